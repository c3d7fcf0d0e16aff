"""The numbers printed in the paper: means and, in parentheses, standard deviations."""

from __future__ import annotations

from reproduction.results import Entry, MeanSD

# Dendrogram purities by row and kernel.
TABLE_1: dict[str, dict[str, Entry]] = {
    "full": {"Kendall": 0.83, "Mallows": 0.75, "Hamming": 0.81, "Cayley": 0.72, "Spearman": 0.81},
    "Monte Carlo": {
        "Kendall": MeanSD(0.78, 0.052),
        "Mallows": MeanSD(0.79, 0.058),
        "Hamming": MeanSD(0.79, 0.063),
        "Cayley": MeanSD(0.82, 0.040),
        "Spearman": MeanSD(0.78, 0.062),
    },
    "antithetic": {"Mallows": MeanSD(0.77, 0.050)},
}

# Standard deviations of p-values by sample size.
TABLE_2: dict[str, dict[int, float]] = {
    "Monte Carlo": {10: 0.0853, 15: 0.0910, 20: 0.0830, 25: 0.1109, 30: 0.0677, 35: 0.0596, 40: 0.0236},
    "antithetic": {10: 0.0706, 15: 0.0663, 20: 0.0712, 25: 0.0594, 30: 0.0502, 35: 0.0363, 40: 0.0222},
}

# Test accuracy, mean log likelihood of the training data and of the test data.
TABLE_3: dict[str, dict[str, tuple[Entry, Entry, Entry]]] = {
    "Mallows": {
        "full": (0.9, -0.2070, -0.5457),
        "Monte Carlo": (MeanSD(0.74, 0.016), MeanSD(-0.2486, 0.005), MeanSD(-0.563, 0.020)),
        "antithetic": (MeanSD(0.75, 0.0), MeanSD(-0.262, 0.001), MeanSD(-0.573, 0.002)),
    },
    "Gaussian": {
        "full": (0.75, -0.2215, -0.7014),
        "Monte Carlo": (MeanSD(0.72, 0.048), MeanSD(-0.2890, 0.0245), MeanSD(-0.5737, 0.043)),
    },
    "Kendall": {
        "full": (0.7, -0.311, -0.597),
        "Monte Carlo": (MeanSD(0.66, 0.037), MeanSD(-0.3575, 0.008), MeanSD(-0.7063, 0.052)),
    },
}

# Numbers of completions by the number of items and of observed pairs (1 to 4, consecutive pairs sharing an item).
SIZES: dict[int, tuple[int | None, ...]] = {
    3: (3, 1, None, None),
    4: (12, 4, 1, None),
    5: (60, 20, 5, 1),
    6: (360, 120, 30, 6),
    7: (2520, 840, 210, 42),
    8: (20160, 6720, 1680, 336),
    9: (181440, 60480, 15120, 3024),
    10: (1814400, 604800, 151200, 30240),
}
