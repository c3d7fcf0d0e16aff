"use strict";
(() => {
  const map = document.querySelector("svg.map");
  const tip = document.querySelector(".tip");
  const known = JSON.parse(document.getElementById("ballots").textContent);
  const circles = [...map.querySelectorAll(".points circle")];
  const points = circles.map((circle) => ({
    circle,
    row: Number(circle.dataset.row),
    x: circle.cx.baseVal.value,
    y: circle.cy.baseVal.value,
    r: circle.r.baseVal.value,
  }));
  const LINES = 12;
  const REACH = 16;
  const COLOURS = 7;
  let current = null;
  /* The clusters as the page was made, until the tree is cut elsewhere. */
  const made = { labels: known.labels, names: known.clusters };
  let cut = made;

  /* Names come from the data: they are only ever set as text, never as markup. */
  const element = (name, text, parent) => {
    const child = document.createElement(name);
    child.textContent = text;
    parent.append(child);
    return child;
  };

  const count = (n) => `${n.toLocaleString("en")} ${n === 1 ? "voter" : "voters"}`;
  const percent = (share) => `${Math.round(100 * share)}%`;
  const letter = (number) => String.fromCharCode(65 + (number % 26)) + (number < 26 ? "" : Math.floor(number / 26) + 1);
  const nItems = known.items.length;

  const buckets = (ranks) => {
    const found = [];
    ranks.forEach((rank, item) => {
      if (rank >= 0) (found[rank] ??= []).push(known.items[item]);
    });
    return found;
  };

  /* A ballot in words, as in the CSV file. */
  const words = (row) => {
    if (known.pairs) return known.pairs[row].map((pair) => pair.join(" > ")).join(", ");
    const levels = buckets(known.ranks[row]);
    if (known.approvals) return levels.length > 1 ? levels[0].join(" = ") : "";
    return levels.map((names) => names.join(" = ")).join(" > ");
  };

  const listPairs = (pairs) => {
    pairs.slice(0, LINES).forEach((pair) => element("p", pair.join(" > "), tip));
    if (pairs.length > LINES) element("p", `and ${pairs.length - LINES} more pairs`, tip);
    if (!pairs.length) element("p", "no preference", tip);
  };

  const listPlaces = (row) => {
    const levels = buckets(known.ranks[row]);
    const free = known.ranks[row].filter((rank) => rank < 0).length;
    if (levels.length < 2 && !(free && levels.length)) return element("p", "no preference", tip);
    if (known.approvals) return element("p", `approves ${levels[0].join(", ")}`, tip);
    const list = element("ol", "", tip);
    let place = 1;
    levels.slice(0, LINES).forEach((names) => {
      const line = element("li", "", list);
      element("span", names.length > 1 ? `${place}=` : `${place}`, line);
      const shown = names.slice(0, 6).join(", ");
      element("span", names.length > 6 ? `${shown} and ${names.length - 6} more` : shown, line);
      place += names.length;
    });
    if (levels.length > LINES) element("p", `and ${levels.length - LINES} more places`, tip);
    if (free) element("p", `${free} ${free === 1 ? known.noun : known.nouns} anywhere`, tip);
  };

  const describe = (row) => {
    tip.replaceChildren();
    element("b", count(known.voters[row]), tip);
    if (known.pairs) listPairs(known.pairs[row]);
    else listPlaces(row);
    if (cut.names.length > 1) element("p", `Cluster ${cut.names[cut.labels[row]]}`, tip);
    if (known.groups.length) {
      const parts = known.groups.map((name, g) => [name, known.byGroup[row][g]]).filter((part) => part[1]);
      element("p", parts.map((part) => `${part[0]} ${part[1].toLocaleString("en")}`).join(", "), tip);
    }
  };

  const place = (point) => {
    const box = map.getBoundingClientRect();
    const scale = box.width / map.viewBox.baseVal.width;
    const x = point.x * scale;
    const y = point.y * scale;
    const gap = point.r * scale + 12;
    const left = x + gap + tip.offsetWidth > box.width ? Math.max(x - gap - tip.offsetWidth, 0) : x + gap;
    const top = Math.min(Math.max(y - tip.offsetHeight / 2, 0), Math.max(box.height - tip.offsetHeight, 0));
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
  };

  const show = (point) => {
    if (current === point) return;
    hide();
    current = point;
    point.circle.classList.add("on");
    describe(point.row);
    tip.hidden = false;
    place(point);
  };

  const hide = () => {
    if (current) current.circle.classList.remove("on");
    current = null;
    tip.hidden = true;
  };

  const best = (candidates, cost) => {
    let found = null;
    let least = Infinity;
    for (const point of candidates) {
      const value = cost(point);
      if (value < least) [found, least] = [point, value];
    }
    return found;
  };

  map.addEventListener("pointermove", (event) => {
    const box = map.getBoundingClientRect();
    const scale = map.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    /* A point under the pointer wins over a near one, and a small one over a large one. */
    const cost = (p) => {
      const d = Math.hypot(p.x - x, p.y - y);
      return d <= p.r ? p.r / 1000 : d - p.r;
    };
    const nearest = best(points, cost);
    if (nearest && cost(nearest) < REACH) show(nearest);
    else hide();
  });
  map.addEventListener("pointerleave", hide);

  /* One point is in the order of the Tab key; the arrow keys lead from it to its neighbours. */
  const rove = (point, focus) => {
    for (const other of points) other.circle.setAttribute("tabindex", "-1");
    point.circle.setAttribute("tabindex", "0");
    if (focus) point.circle.focus();
  };
  const ahead = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  const byCircle = new Map(points.map((point) => [point.circle, point]));
  /* Listeners of the focus go to the box around the map: an SVG element that has one becomes a stop of the Tab key. */
  const stage = map.parentElement;
  stage.addEventListener("focusin", (event) => {
    const point = byCircle.get(event.target);
    if (point) show(point);
  });
  stage.addEventListener("focusout", hide);
  stage.addEventListener("keydown", (event) => {
    const from = byCircle.get(event.target);
    if (!from) return;
    let to = null;
    if (event.key in ahead) {
      const [dx, dy] = ahead[event.key];
      to = best(points, (p) => {
        const along = (p.x - from.x) * dx + (p.y - from.y) * dy;
        const across = Math.abs((p.x - from.x) * dy) + Math.abs((p.y - from.y) * dx);
        return p !== from && along > 0.5 ? along + 2 * across : Infinity;
      });
    } else if (event.key === "Home") to = points[0];
    else if (event.key === "Escape") return hide();
    else return;
    event.preventDefault();
    if (to) rove(to, true);
  });
  if (points.length) rove(points[0], false);

  const byColour = (byGroup) => {
    map.classList.toggle("by-group", byGroup);
    map.classList.toggle("by-cluster", !byGroup);
    for (const key of document.querySelectorAll(".by-group-only")) key.hidden = !byGroup;
    for (const key of document.querySelectorAll(".by-cluster-key")) key.hidden = byGroup || cut !== made;
  };
  const colours = [...document.querySelectorAll(".switch input")];
  for (const choice of colours) {
    choice.addEventListener("change", () => byColour(choice.value === "group"));
    if (choice.checked) choice.dispatchEvent(new Event("change"));
  }

  /* ------------------------------------------------------------------ what some ballots have in common */

  /* Mean places, from 1: tied items share theirs, and of free ones it is the mean over all they may have. */
  const placesOf = (row) => {
    const places = new Array(nItems).fill((nItems + 1) / 2);
    if (known.pairs) {
      for (const [better, worse] of known.pairs[row]) {
        places[itemNumber.get(better)] -= 0.5;
        places[itemNumber.get(worse)] += 0.5;
      }
      return places;
    }
    const ranks = known.ranks[row];
    const sizes = [];
    for (const rank of ranks) if (rank >= 0) sizes[rank] = (sizes[rank] ?? 0) + 1;
    const middle = [];
    let before = 0;
    for (const size of sizes) {
      middle.push(before + (size + 1) / 2);
      before += size;
    }
    ranks.forEach((rank, item) => {
      if (rank >= 0) places[item] = (middle[rank] * (nItems + 1)) / (before + 1);
    });
    return places;
  };
  const itemNumber = new Map(known.items.map((name, item) => [name, item]));

  const firstOf = (row) => {
    if (known.pairs) {
      const worse = new Set(known.pairs[row].map((pair) => pair[1]));
      return [...new Set(known.pairs[row].map((pair) => pair[0]))].filter((x) => !worse.has(x)).map((x) => itemNumber.get(x));
    }
    const ranks = known.ranks[row];
    if (!ranks.some((rank) => rank !== 0)) return [];
    return ranks.flatMap((rank, item) => (rank === 0 ? [item] : []));
  };

  const summary = (rows) => {
    const places = new Array(nItems).fill(0);
    const firsts = new Array(nItems).fill(0);
    let voters = 0;
    for (const row of rows) {
      const weight = known.weights[row];
      voters += weight;
      placesOf(row).forEach((place, item) => (places[item] += weight * place));
      const first = firstOf(row);
      for (const item of first) firsts[item] += known.approvals ? weight : weight / first.length;
    }
    return { voters, places: places.map((x) => x / voters), firsts: firsts.map((x) => x / voters) };
  };
  const everyRow = known.weights.map((_, row) => row);
  const overall = summary(everyRow);
  const inOrder = (found) => known.items.map((_, item) => item).sort((a, b) => found.places[a] - found.places[b]);

  const panel = document.getElementById("explored");
  const tell = (title, ...lines) => {
    panel.replaceChildren();
    panel.hidden = false;
    element("h3", title, panel);
    for (const line of lines.filter(Boolean)) element("p", line, panel);
  };

  /* ------------------------------------------------------------------ ballots selected */

  const wants = (item) => (known.approvals ? `approve of ${known.items[item]}` : `put ${known.items[item]} first`);
  const selected = new Set();
  const showSelection = () => {
    for (const point of points) point.circle.classList.toggle("chosen", selected.has(point.row));
    map.classList.toggle("choosing", selected.size > 0);
    if (!selected.size) {
      panel.hidden = true;
      return;
    }
    const found = summary([...selected]);
    const share = percent(found.voters / overall.voters);
    const order = inOrder(found).slice(0, 8).map((item) => known.items[item]);
    const moved = known.items
      .map((name, item) => [overall.places[item] - found.places[item], name])
      .sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]))
      .filter((move) => Math.abs(move[0]) >= 0.05)
      .slice(0, 6);
    const first = found.firsts.indexOf(Math.max(...found.firsts));
    tell(
      `Selected: ${selected.size.toLocaleString("en")} ${selected.size === 1 ? "ballot" : "ballots"} of ${count(found.voters)}, ${share}`,
      `In the order of their mean places: ${order.join(" > ")}${nItems > 8 ? " > …" : ""}`,
      found.firsts[first] > 0 &&
        `${percent(found.firsts[first])} of them ${wants(first)}, of all voters ${percent(overall.firsts[first])}.`,
      moved.length &&
        `Higher (+) or lower (−) than among all, in places: ${moved
          .map(([by, name]) => `${name} ${by > 0 ? "+" : "−"}${Math.abs(by).toFixed(1)}`)
          .join(", ")}`,
    );
  };
  const toggle = (row) => {
    if (!selected.delete(row)) selected.add(row);
    showSelection();
  };
  const clear = () => {
    selected.clear();
    showSelection();
  };

  const inMap = (event) => {
    const box = map.getBoundingClientRect();
    const scale = map.viewBox.baseVal.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };
  const frame = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  frame.setAttribute("class", "frame");
  let start = null;
  map.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" && event.button === 0) start = inMap(event);
  });
  map.addEventListener("pointermove", (event) => {
    if (!start) return;
    const end = inMap(event);
    if (!frame.isConnected && Math.hypot(end[0] - start[0], end[1] - start[1]) < 6) return;
    hide();
    if (!frame.isConnected) map.append(frame);
    const corner = [0, 1].map((axis) => Math.min(start[axis], end[axis]));
    const size = [0, 1].map((axis) => Math.abs(start[axis] - end[axis]));
    ["x", "y"].forEach((name, axis) => frame.setAttribute(name, corner[axis]));
    ["width", "height"].forEach((name, axis) => frame.setAttribute(name, size[axis]));
  });
  const finish = (event) => {
    if (!start) return;
    const [from, to] = [start, inMap(event)];
    start = null;
    if (!frame.isConnected) return;
    frame.remove();
    const inside = (value, axis) => value >= Math.min(from[axis], to[axis]) && value <= Math.max(from[axis], to[axis]);
    if (!event.shiftKey) selected.clear();
    for (const point of points) if (inside(point.x, 0) && inside(point.y, 1)) selected.add(point.row);
    dragged = true;
    showSelection();
  };
  let dragged = false;
  window.addEventListener("pointerup", finish);
  map.addEventListener("click", () => {
    if (dragged) dragged = false;
    else if (current) toggle(current.row);
    else clear();
  });
  stage.addEventListener("keydown", (event) => {
    const point = byCircle.get(event.target);
    if (!point) return;
    if (event.key === " " || event.key === "Enter") {
      event.preventDefault();
      toggle(point.row);
    } else if (event.key === "Escape") clear();
  });

  /* ------------------------------------------------------------------ the tree cut elsewhere */

  const labelsOf = (number) => {
    const n = known.mergers.length + 1;
    const top = Array.from({ length: 2 * n - 1 }, (_, node) => node);
    for (let step = n - number - 1; step >= 0; step--) for (const child of known.mergers[step]) top[child] = top[n + step];
    const rows = new Map();
    for (let leaf = 0; leaf < n; leaf++) rows.set(top[leaf], [...(rows.get(top[leaf]) ?? []), leaf]);
    const weigh = (part) => part.reduce((sum, row) => sum + known.weights[row], 0);
    return [...rows.values()].sort((a, b) => weigh(b) - weigh(a));
  };

  /* Each cluster is named after the first choice that sets it apart, no two after the same. */
  const nameParts = (found) => {
    const differences = [];
    found.forEach((part, number) => {
      part.firsts.forEach((share, item) => {
        const others = (overall.firsts[item] * overall.voters - share * part.voters) / (overall.voters - part.voters || 1);
        differences.push([share - others, number, item]);
      });
    });
    differences.sort((a, b) => b[0] - a[0]);
    const names = new Array(found.length).fill(null);
    const taken = new Set();
    for (const [, number, item] of differences) {
      if (names[number] !== null || taken.has(item)) continue;
      names[number] = `${letter(number)} · ${known.approvals ? "approves " : ""}${known.items[item]}${known.approvals ? "" : " first"}`;
      taken.add(item);
    }
    return names.map((name, number) => name ?? letter(number));
  };

  const cutInto = (number) => {
    if (number === Math.max(made.names.length, 1)) {
      cut = made;
      panel.hidden = true;
    } else {
      const parts = labelsOf(number);
      const found = parts.map(summary);
      const labels = new Array(known.weights.length).fill(0);
      parts.forEach((rows, place) => rows.forEach((row) => (labels[row] = place)));
      cut = { labels, names: nameParts(found) };
      tell(`The tree cut into ${number}`, number > Math.max(made.names.length, 1) && "The ballots do not speak for so many.");
      const list = element("ul", "", panel);
      list.className = "parts";
      found.forEach((part, place) => {
        const line = element("li", "", list);
        element("span", "", line).className = `dot k${Math.min(place, COLOURS)}`;
        const order = inOrder(part).slice(0, 5).map((item) => known.items[item]);
        const share = percent(part.voters / overall.voters);
        element("span", `${cut.names[place]}: ${count(part.voters)}, ${share}; ${order.join(" > ")}`, line);
      });
    }
    for (const point of points) {
      const group = [...point.circle.classList].find((name) => name.startsWith("g"));
      point.circle.setAttribute("class", `k${Math.min(cut.labels[point.row], COLOURS)} ${group}`);
    }
    map.classList.toggle("recut", cut !== made);
    for (const choice of colours) choice.checked = choice.value === "cluster";
    byColour(false);
    selected.clear();
    map.classList.remove("choosing");
  };
  const slider = document.getElementById("number");
  if (slider) {
    slider.addEventListener("input", () => {
      document.getElementById("number-now").textContent = slider.value;
      cutInto(Number(slider.value));
    });
  }

  /* ------------------------------------------------------------------ an item looked for */

  const search = document.getElementById("search");
  const look = () => {
    const wanted = search.value.trim().toLowerCase();
    const exact = known.items.findIndex((name) => name.toLowerCase() === wanted);
    const item = exact >= 0 ? exact : known.items.findIndex((name) => wanted && name.toLowerCase().includes(wanted));
    for (const row of document.querySelectorAll(".heat tr")) row.classList.toggle("looked", Number(row.dataset.item) === item);
    selected.clear();
    if (item < 0) {
      showSelection();
      if (wanted) tell(`No ${known.noun} is called so.`);
      return;
    }
    const rows = everyRow.filter((row) => firstOf(row).includes(item));
    for (const row of rows) selected.add(row);
    for (const point of points) point.circle.classList.toggle("chosen", selected.has(point.row));
    map.classList.toggle("choosing", rows.length > 0);
    const place = known.order.indexOf(item) + 1;
    const beaten = [];
    const lost = [];
    if (known.ahead.length) {
      known.items.forEach((name, other) => {
        const margin = known.ahead[item][other] - known.ahead[other][item];
        if (margin > 0) beaten.push(name);
        if (margin < 0) lost.push(name);
      });
    }
    const some = (names) => names.slice(0, 8).join(", ") + (names.length > 8 ? ` and ${names.length - 8} more` : "");
    tell(
      known.items[item],
      `Place ${place} of ${nItems} in the order that contradicts voters least; mean place ${overall.places[item].toFixed(1)}.`,
      `${percent(overall.firsts[item])} ${wants(item)}: these ballots are marked on the map.`,
      beaten.length && `Beats ${some(beaten)}.`,
      lost.length && `Loses to ${some(lost)}.`,
    );
  };
  search.addEventListener("change", look);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") look();
  });

  /* ------------------------------------------------------------------ wide tables say so */

  const sayWide = () => {
    for (const box of document.querySelectorAll(".tabular")) {
      const inner = box.querySelector(".scroll");
      box.querySelector(".hint").hidden = inner.scrollWidth <= inner.clientWidth + 1;
    }
  };
  window.addEventListener("resize", sayWide);
  document.addEventListener("toggle", sayWide, true);
  sayWide();

  /* ------------------------------------------------------------------ to take away */

  const save = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order",
    "font-family", "font-size", "font-weight", "text-anchor", "image-rendering", "display"];
  const alone = (svg) => {
    const copy = svg.cloneNode(true);
    const originals = [svg, ...svg.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((part, place) => {
      const style = getComputedStyle(originals[place]);
      for (const name of COPIED) if (style.getPropertyValue(name)) part.setAttribute(name, style.getPropertyValue(name));
      for (const name of ["class", "tabindex", "data-row"]) part.removeAttribute(name);
    });
    const { width, height } = svg.viewBox.baseVal;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of [["width", width], ["height", height]]) paper.setAttribute(name, value);
    paper.setAttribute("fill", getComputedStyle(document.documentElement).backgroundColor);
    copy.prepend(paper);
    return new XMLSerializer().serializeToString(copy);
  };

  const saveAsPng = (name, svg) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      const { width, height } = svg.viewBox.baseVal;
      [canvas.width, canvas.height] = [2 * width, 2 * height];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(`${name}.png`, blob), "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(alone(svg))}`;
  };

  /* What looks like a formula gets an apostrophe, so that no spreadsheet runs it. */
  const cell = (text) => {
    const plain = /^[=+\-@\t\r]/.test(text) && !/^-?[\d.,]+%?$/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const saveAsCsv = (name, rows) => {
    const text = rows.map((row) => row.map((value) => cell(String(value))).join(",")).join("\n");
    save(`${name}.csv`, new Blob([`${text}\n`], { type: "text/csv" }));
  };
  const cellsOf = (table) =>
    [...table.rows].map((row) =>
      [...row.cells].map((one) => [...one.childNodes].map((node) => node.textContent.trim()).filter(Boolean).join(" / ")),
    );
  const ballotRows = () => {
    const heads = ["voters", "x", "y", ...(cut.names.length > 1 ? ["cluster"] : []), ...known.groups, "ballot"];
    /* Of ballots that are not on the map no cluster is known where the tree is cut elsewhere. */
    return [heads, ...known.voters.map((voters, row) => [
      voters,
      ...known.points[row],
      ...(cut.names.length > 1 ? [cut.names[cut.labels[row]] ?? ""] : []),
      ...known.byGroup[row],
      words(row),
    ])];
  };

  const offer = (parent, buttons) => {
    const box = document.createElement("p");
    box.className = "take";
    element("span", "Save as ", box);
    for (const [label, spoken, action] of buttons) {
      const button = element("button", label, box);
      button.type = "button";
      button.setAttribute("aria-label", spoken);
      button.addEventListener("click", action);
    }
    parent.append(box);
  };
  const visible = (figure) => [...figure.querySelectorAll("svg")].find((svg) => svg.getClientRects().length);
  for (const figure of document.querySelectorAll("figure")) {
    if (!figure.querySelector("svg")) continue;
    const { name } = figure.dataset;
    const picture = figure.querySelector("svg").getAttribute("aria-label").split(/[.:]/)[0];
    const buttons = [
      ["SVG", `Save as SVG: ${picture}`, () => save(`${name}.svg`, new Blob([alone(visible(figure))], { type: "image/svg+xml" }))],
      ["PNG", `Save as PNG: ${picture}`, () => saveAsPng(name, visible(figure))],
    ];
    if (name === "map") {
      const some = known.voters.length < known.ballots;
      const which = some
        ? `${known.voters.length.toLocaleString("en")} of ${known.ballots.toLocaleString("en")} ballots`
        : "the ballots";
      buttons.push([`CSV of ${which}`, `Save ${which} with cluster and coordinates as CSV`, () => saveAsCsv("ballots", ballotRows())]);
    }
    offer(figure, buttons);
  }
  for (const box of document.querySelectorAll(".tabular")) {
    const label = box.querySelector("caption").textContent;
    offer(box, [["CSV", `Save as CSV: ${label}`, () => saveAsCsv(box.dataset.name, cellsOf(box.querySelector("table")))]]);
  }
})();
