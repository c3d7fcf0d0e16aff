"use strict";
(() => {
  const map = document.querySelector("svg.map");
  const tip = document.querySelector(".tip");
  const known = JSON.parse(document.getElementById("ballots").textContent);
  const nItems = known.items.length;
  const LINES = 12;
  const REACH = 16;
  const COLOURS = 7;
  const LEAST_SHIFT = known.approvals ? 0.5 : 0.05;
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
  const drawn = (name, attributes, parent) => {
    const child = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) child.setAttribute(key, value);
    parent.append(child);
    return child;
  };

  const plain = (n) => n.toLocaleString("en");
  const count = (n) => `${plain(n)} ${n === 1 ? known.voter : known.votersNoun}`;
  const ballots = (n) => `${plain(n)} ${known.ballot}${n === 1 ? "" : "s"}`;
  const percent = (share) => `${Math.round(100 * share)}%`;
  const sentence = (text) => (text.endsWith(".") ? text : `${text}.`);
  const letter = (number) => String.fromCharCode(65 + (number % 26)) + (number < 26 ? "" : Math.floor(number / 26) + 1);

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
    "font-family", "font-size", "font-weight", "text-anchor", "image-rendering"];
  const LINE = 20;
  const pen = document.createElement("canvas").getContext("2d");

  /* What the colours of a picture stand for: its own key, or for tree and matrix that of the clusters. */
  const keyOf = (figure) => {
    const own = [...figure.querySelectorAll("ul.key, ul.parts")].filter((list) => list.getClientRects().length);
    const lists = ["tree", "gram"].includes(figure.dataset.name) ? document.querySelectorAll(".by-cluster-key") : own;
    return [...lists].flatMap((list) =>
      [...list.children].map((line) => [
        getComputedStyle(line.querySelector(".dot")).backgroundColor,
        line.dataset.name ?? line.textContent.trim(),
      ]),
    );
  };

  /* A picture as a file of its own: as it is drawn for a desk, with a title above and its key below. */
  const alone = (figure) => {
    const svg = figure.querySelector("svg");
    const copy = svg.cloneNode(true);
    const originals = [svg, ...svg.querySelectorAll("*")];
    const leftOut = [];
    const recoloured = svg.matches(".by-group, .recut");
    [copy, ...copy.querySelectorAll("*")].forEach((part, place) => {
      const style = getComputedStyle(originals[place]);
      for (const name of COPIED) if (style.getPropertyValue(name)) part.setAttribute(name, style.getPropertyValue(name));
      const unseen = style.display === "none" && !part.matches(".large");
      if (unseen || part.matches(".small") || (recoloured && part.matches(".by-cluster-only"))) leftOut.push(part);
      for (const name of ["class", "tabindex", "data-row", "data-says"]) part.removeAttribute(name);
    });
    for (const part of leftOut) part.remove();
    const heading = figure.closest("article")?.querySelector("h3") ?? figure.closest("section").querySelector("h2");
    const title = `${document.title}: ${heading.textContent.trim()}`;
    const style = getComputedStyle(document.documentElement);
    const text = { fill: style.color, "font-family": style.fontFamily, "font-size": "13px" };
    const key = keyOf(figure);
    pen.font = `600 15px ${style.fontFamily}`;
    const wide = Math.max(pen.measureText(title).width, ...key.map(([, name]) => 24 + pen.measureText(name).width));
    const { width, height } = svg.viewBox.baseVal;
    const size = { width: Math.ceil(Math.max(width, wide + 8)), height: Math.ceil(height + LINE * (key.length + 2.5)) };
    const corner = [-(size.width - width) / 2, -1.5 * LINE];
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("viewBox", [...corner, size.width, size.height].join(" "));
    for (const [name, value] of Object.entries(size)) copy.setAttribute(name, value);
    const paper = drawn("rect", { x: corner[0], y: corner[1], ...size, fill: style.backgroundColor }, copy);
    copy.prepend(paper);
    drawn("text", { ...text, "font-size": "15px", "font-weight": 600, x: corner[0] + 4, y: -10 }, copy).textContent = title;
    key.forEach(([fill, name], number) => {
      const y = height + LINE * (number + 0.5);
      drawn("rect", { x: corner[0] + 4, y, width: 10, height: 10, fill }, copy);
      drawn("text", { ...text, x: corner[0] + 22, y: y + 10 }, copy).textContent = name;
    });
    return [new XMLSerializer().serializeToString(copy), size];
  };

  const saveAsPng = (name, [written, size]) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [2 * size.width, 2 * size.height];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(`${name}.png`, blob), "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(written)}`;
  };

  /* What looks like a formula gets an apostrophe, so that no spreadsheet runs it. */
  const cell = (text) => {
    const shown = /^[=+\-@\t\r]/.test(text) && !/^-?[\d.,]+%?$/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
  };
  const saveAsCsv = (name, rows) => {
    const text = rows.map((row) => row.map((value) => cell(String(value))).join(",")).join("\n");
    save(`${name}.csv`, new Blob([`${text}\n`], { type: "text/csv" }));
  };
  const cellsOf = (table) =>
    [...table.rows].map((row) => [...row.cells].map((one) => one.dataset.whole ?? one.textContent.trim()));
  /* Every two items once, by their whole names, in numbers of voters. */
  const duelRows = () => {
    const rows = [["first", "second", "prefer the first", "prefer the second", "neither"]];
    known.duels.forEach((a, i) => {
      known.duels.slice(i + 1).forEach((b, place) => {
        const [ahead, behind] = [known.ahead[i][i + 1 + place], known.ahead[i + 1 + place][i]];
        rows.push([known.items[a], known.items[b], ahead, behind, known.all - ahead - behind]);
      });
    });
    return rows;
  };
  const ballotRows = () => {
    const heads = [known.votersNoun, "x", "y", ...(cut.names.length > 1 ? ["cluster"] : []), ...known.groups, known.ballot];
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
  for (const figure of document.querySelectorAll("figure")) {
    if (!figure.querySelector("svg")) continue;
    const { name } = figure.dataset;
    const picture = figure.querySelector("svg").getAttribute("aria-label").split(/[.:]/)[0];
    const buttons = [
      ["SVG", `Save as SVG: ${picture}`, () => save(`${name}.svg`, new Blob([alone(figure)[0]], { type: "image/svg+xml" }))],
      ["PNG", `Save as PNG: ${picture}`, () => saveAsPng(name, alone(figure))],
    ];
    if (name === "map") {
      const some = known.voters.length < known.ballots;
      const which = some ? `${plain(known.voters.length)} of ${ballots(known.ballots)}` : `the ${known.ballot}s`;
      buttons.push([`CSV of ${which}`, `Save ${which} with cluster and coordinates as CSV`, () => saveAsCsv("ballots", ballotRows())]);
    }
    if (name === "duels") {
      const which = known.duels.length < nItems ? ` of the first ${plain(known.duels.length)} ${known.nouns}` : "";
      buttons.push([`CSV${which}`, `Save as CSV: all duels${which}`, () => saveAsCsv("duels", duelRows())]);
    }
    offer(figure, buttons);
  }
  for (const box of document.querySelectorAll(".tabular:not([data-name=duels])")) {
    const label = box.querySelector("caption").textContent;
    offer(box, [["CSV", `Save as CSV: ${label}`, () => saveAsCsv(box.dataset.name, cellsOf(box.querySelector("table")))]]);
  }

  /* ------------------------------------------------------------------ the map: a ballot to be read */

  if (!map) return;
  const points = [...map.querySelectorAll(".points circle")].map((circle) => ({
    circle,
    row: Number(circle.dataset.row),
    x: circle.cx.baseVal.value,
    y: circle.cy.baseVal.value,
    r: circle.r.baseVal.value,
  }));
  let current = null;

  const listPairs = (pairs) => {
    pairs.slice(0, LINES).forEach((pair) => element("p", pair.join(" > "), tip));
    if (pairs.length > LINES) element("p", `and ${pairs.length - LINES} more pairs`, tip);
    if (!pairs.length) element("p", "no preference", tip);
  };

  const listPlaces = (row) => {
    const levels = buckets(known.ranks[row]);
    const free = known.ranks[row].filter((rank) => rank < 0).length;
    if (levels.length < 2 && !(free && levels.length)) {
      return element("p", known.approvals ? "approves all or none" : "no preference", tip);
    }
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
      element("p", parts.map((part) => `${part[0]} ${plain(part[1])}`).join(", "), tip);
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

  const scaleOf = () => map.viewBox.baseVal.width / map.getBoundingClientRect().width;
  const inMap = (event) => {
    const box = map.getBoundingClientRect();
    return [(event.clientX - box.left) * scaleOf(), (event.clientY - box.top) * scaleOf()];
  };
  const pointAt = (event) => {
    const [x, y] = inMap(event);
    /* A point under the pointer wins over a near one, and a small one over a large one. */
    const cost = (p) => {
      const d = Math.hypot(p.x - x, p.y - y);
      return d <= p.r ? p.r / 1000 : d - p.r;
    };
    const nearest = best(points, cost);
    if (nearest && cost(nearest) < REACH * Math.max(scaleOf(), 1)) show(nearest);
    else hide();
  };
  map.addEventListener("pointermove", pointAt);
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
  rove(points[0], false);

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

  /* First choices are shares of those who have one, approvals of all; of who approves all or none a part does all. */
  const summary = (rows) => {
    const places = new Array(nItems).fill(0);
    const firsts = new Array(nItems).fill(0);
    let [voters, saying] = [0, 0];
    for (const row of rows) {
      const weight = known.weights[row];
      voters += weight;
      placesOf(row).forEach((place, item) => (places[item] += weight * place));
      const first = firstOf(row);
      if (first.length) saying += weight;
      for (const item of first) firsts[item] += known.approvals ? weight : weight / first.length;
    }
    const silent = known.approvals ? known.approving * (voters - saying) : 0;
    const all = (known.approvals ? voters : saying) || 1;
    return { voters, saying, places: places.map((x) => x / voters), firsts: firsts.map((x) => (x + silent) / all) };
  };
  const everyRow = known.weights.map((_, row) => row);
  const overall = summary(everyRow);
  const sampled = overall.voters < known.all;
  const ofShown = sampled ? ` of the ${plain(overall.voters)} shown` : "";
  /* What is wanted most comes first: the smallest mean place, or the largest share of approvals. */
  const standing = (found) => (known.approvals ? found.firsts.map((share) => -100 * share) : found.places);
  const everywhere = standing({ places: known.places, firsts: known.shares });
  const inOrder = (found) => {
    const values = standing(found);
    return known.items.map((_, item) => item).sort((a, b) => values[a] - values[b]);
  };
  const byWhat = known.approvals ? "approvals" : "mean places";
  const wants = (item) => (known.approvals ? `approve of ${known.items[item]}` : `put ${known.items[item]} first`);

  const panel = document.getElementById("explored");
  const tell = (title, ...lines) => {
    panel.replaceChildren();
    panel.hidden = false;
    element("h3", title, panel);
    for (const line of lines.filter(Boolean)) element("p", line, panel);
  };

  /* ------------------------------------------------------------------ ballots selected */

  const selected = new Set();
  const mark = () => {
    for (const point of points) point.circle.classList.toggle("chosen", selected.has(point.row));
    map.classList.toggle("choosing", selected.size > 0);
  };
  const showSelection = () => {
    mark();
    if (!selected.size) {
      panel.hidden = true;
      return;
    }
    const found = summary([...selected]);
    const values = standing(found);
    const order = inOrder(found).slice(0, 8).map((item) => known.items[item]);
    const moved = selected.size < everyRow.length
      ? known.items
          .map((name, item) => [everywhere[item] - values[item], name])
          .sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]))
          .filter((move) => Math.abs(move[0]) >= LEAST_SHIFT)
          .slice(0, 6)
      : [];
    const first = found.firsts.indexOf(Math.max(...found.firsts));
    const signed = (by) => `${by > 0 ? "+" : "−"}${Math.abs(by).toFixed(known.approvals ? 0 : 1)}`;
    tell(
      `Selected: ${ballots(selected.size)} of ${count(found.voters)}, ${percent(found.voters / overall.voters)}${ofShown}`,
      `In the order of their ${byWhat}: ${order.join(" > ")}${nItems > 8 ? " > …" : ""}`,
      found.firsts[first] > 0 &&
        `${percent(found.firsts[first])} of them ${wants(first)}, of all ${known.votersNoun} ${percent(known.shares[first])}.`,
      moved.length &&
        `Higher (+) or lower (−) than among all, in ${known.approvals ? "percentage points" : "places"}: ${moved
          .map(([by, name]) => `${name} ${signed(by)}`)
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
  /* A tap has not moved there before. */
  map.addEventListener("click", (event) => {
    if (dragged) {
      dragged = false;
      return;
    }
    pointAt(event);
    if (current) toggle(current.row);
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

  /* Each cluster is named after the first choice that sets it apart, no two after the same, with the shares that say so. */
  const nameParts = (found) => {
    const differences = [];
    const weight = (part) => (known.approvals ? part.voters : part.saying);
    found.forEach((part, number) => {
      part.firsts.forEach((share, item) => {
        const rest = weight(overall) - weight(part) || 1;
        const others = Math.max((overall.firsts[item] * weight(overall) - share * weight(part)) / rest, 0);
        differences.push([share - others, number, item, share, others]);
      });
    });
    differences.sort((a, b) => b[0] - a[0]);
    const names = found.map((_, number) => [letter(number), ""]);
    const taken = new Set();
    for (const [, number, item, share, others] of differences) {
      if (names[number][1] || taken.has(item)) continue;
      const called = known.approvals ? `approves ${known.items[item]}` : `${known.items[item]} first`;
      names[number] = [`${letter(number)} · ${called}`, ` (${percent(share)}, of all others ${percent(others)})`];
      taken.add(item);
    }
    return names;
  };

  const cutInto = (number) => {
    if (number === Math.max(made.names.length, 1)) {
      cut = made;
      panel.hidden = true;
    } else {
      const parts = labelsOf(number);
      const found = parts.map(summary);
      const named = nameParts(found);
      const labels = new Array(known.weights.length).fill(0);
      parts.forEach((rows, place) => rows.forEach((row) => (labels[row] = place)));
      cut = { labels, names: named.map(([name]) => name) };
      tell(
        `The tree cut into ${number}`,
        number > Math.max(made.names.length, 1) && `The ${known.ballot}s do not speak for so many.`,
        sampled && `Numbers are those of the ${count(overall.voters)} shown, taken at random from ${plain(known.all)}.`,
      );
      const list = element("ul", "", panel);
      list.className = "parts";
      found.forEach((part, place) => {
        const line = element("li", "", list);
        line.dataset.name = named[place].join("");
        element("span", "", line).className = `dot k${Math.min(place, COLOURS)}`;
        const order = inOrder(part).slice(0, 5).map((item) => known.items[item]);
        const share = percent(part.voters / overall.voters);
        element("span", `${named[place].join("")}: ${count(part.voters)}, ${share}; ${order.join(" > ")}`, line);
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
    for (const row of everyRow) if (firstOf(row).includes(item)) selected.add(row);
    mark();
    const beaten = [];
    const lost = [];
    const own = known.duels.indexOf(item);
    if (own >= 0) {
      known.duels.forEach((other, place) => {
        const margin = known.ahead[own][place] - known.ahead[place][own];
        if (margin > 0) beaten.push(known.items[other]);
        if (margin < 0) lost.push(known.items[other]);
      });
    }
    const some = (names) => names.slice(0, 8).join(", ") + (names.length > 8 ? ` and ${names.length - 8} more` : "");
    const ordered = `Place ${known.order.indexOf(item) + 1} of ${nItems} in the order that contradicts ${known.votersNoun} least`;
    tell(
      known.items[item],
      known.approvals ? `${ordered}.` : `${ordered}; mean place ${known.places[item].toFixed(1)}.`,
      `${percent(known.shares[item])}${known.approvals ? "" : " of those who have a first choice"} ${wants(item)}: these ` +
        `${known.ballot}s are marked on the map.`,
      beaten.length && sentence(`Beats ${some(beaten)}`),
      lost.length && sentence(`Loses to ${some(lost)}`),
    );
  };
  search.addEventListener("change", look);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") look();
  });
})();
