"use strict";
(() => {
  const map = document.querySelector("svg.map");
  const tip = document.querySelector(".tip");
  const data = JSON.parse(document.getElementById("ballots").textContent);
  const nItems = data.items.length;
  const MAX_LINES = 12;
  const POINTER_DISTANCE = 16;
  const COLOURS = 7;
  /* The clusters of the page, until a reader chooses another number. */
  const original = { labels: data.labels, names: data.clusters };
  let cut = original;

  /* A sentence of sentences.toml with its fields filled in. */
  const say = (name, fields = {}) =>
    data.sentences[name].replace(/\{(\w+)\}/g, (_, field) => fields[field] ?? data.nouns[field]);

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

  const number = (n) => n.toLocaleString("en");
  const countOf = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;
  const voters = (n) => countOf(n, data.nouns.voter, data.nouns.voters);
  const ballots = (n) => countOf(n, data.nouns.ballot, data.nouns.ballots);
  const percent = (share) => `${Math.round(100 * share)}%`;
  const listed = (names, limit) => {
    const joined = names.slice(0, limit).join(names.some((name) => name.includes(",")) ? "; " : ", ");
    return names.length > limit ? say("more_names", { names: joined, n: names.length - limit }) : joined;
  };
  const letter = (n) => String.fromCharCode(65 + (n % 26)) + (n < 26 ? "" : Math.floor(n / 26) + 1);

  const buckets = (ranks) => {
    const found = [];
    ranks.forEach((rank, item) => {
      if (rank >= 0) (found[rank] ??= []).push(data.items[item]);
    });
    return found;
  };

  /* The text of a ballot, as in the CSV file. */
  const ballotText = (row) => {
    if (data.pairs) return data.pairs[row].map((pair) => pair.join(" > ")).join(", ");
    const levels = buckets(data.ranks[row]);
    if (data.approvals) return levels.length > 1 ? levels[0].join(" = ") : "";
    return levels.map((names) => names.join(" = ")).join(" > ");
  };

  /* ------------------------------------------------------------------ hints for wide tables */

  const showHints = () => {
    for (const box of document.querySelectorAll(".tabular")) {
      const inner = box.querySelector(".scroll");
      box.querySelector(".hint").hidden = inner.scrollWidth <= inner.clientWidth + 1;
    }
  };
  window.addEventListener("resize", showHints);
  document.addEventListener("toggle", showHints, true);
  showHints();

  /* ------------------------------------------------------------------ saving pictures and tables */

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

  /* The meaning of the colours of a picture: its own key, or that of the clusters for dendrogram and Gram matrix. */
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

  /* A picture as a standalone SVG document, as drawn for wide screens, with a title above and its key below. */
  const standalone = (figure) => {
    const svg = figure.querySelector("svg");
    const copy = svg.cloneNode(true);
    const originals = [svg, ...svg.querySelectorAll("*")];
    const omitted = [];
    const recoloured = svg.matches(".by-group, .recut");
    [copy, ...copy.querySelectorAll("*")].forEach((part, index) => {
      const style = getComputedStyle(originals[index]);
      for (const name of COPIED) if (style.getPropertyValue(name)) part.setAttribute(name, style.getPropertyValue(name));
      const unseen = style.display === "none" && !part.matches(".large");
      if (unseen || part.matches(".small") || (recoloured && part.matches(".by-cluster-only"))) omitted.push(part);
      for (const name of ["class", "tabindex", "data-row", "data-says"]) part.removeAttribute(name);
    });
    for (const part of omitted) part.remove();
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
    key.forEach(([fill, name], index) => {
      const y = height + LINE * (index + 0.5);
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

  /* A cell that looks like a formula gets an apostrophe, so that no spreadsheet runs it. */
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
  /* Every pair of items once, with full names and numbers of voters. */
  const contestRows = () => {
    const rows = [["first", "second", "ahead", "behind", "neither"].map((name) => say(`head_${name}`))];
    data.contestItems.forEach((a, i) => {
      data.contestItems.slice(i + 1).forEach((b, index) => {
        const [ahead, behind] = [data.ahead[i][i + 1 + index], data.ahead[i + 1 + index][i]];
        const neither = data.ties ? data.ties[i][i + 1 + index] : data.nVoters - ahead - behind;
        rows.push([data.items[a], data.items[b], ahead, behind, neither]);
      });
    });
    return rows;
  };
  const ballotRows = () => {
    const clusters = cut.names.length > 1;
    const heads = [data.nouns.voters, "x", "y", ...(clusters ? [say("head_cluster")] : []), ...data.groups, data.nouns.ballot];
    /* After another number was chosen, the clusters of ballots that are not on the map are unknown. */
    return [heads, ...data.voters.map((count, row) => [
      count,
      ...data.points[row],
      ...(clusters ? [cut.names[cut.labels[row]] ?? ""] : []),
      ...data.byGroup[row],
      ballotText(row),
    ])];
  };

  const offer = (parent, buttons) => {
    const box = document.createElement("p");
    box.className = "take";
    element("span", say("save_as"), box);
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
      ["SVG", say("save_picture", { format: "SVG", picture }), () => save(`${name}.svg`, new Blob([standalone(figure)[0]], { type: "image/svg+xml" }))],
      ["PNG", say("save_picture", { format: "PNG", picture }), () => saveAsPng(name, standalone(figure))],
    ];
    if (name === "map") {
      const all = data.voters.length === data.nBallots;
      const which = say(all ? "all_ballots" : "some_ballots", { n: number(data.voters.length), n_ballots: ballots(data.nBallots) });
      buttons.push([say("csv_ballots", { which }), say("save_ballots", { which }), () => saveAsCsv("ballots", ballotRows())]);
    }
    if (name === "contests") {
      const n = data.contestItems.length;
      const which = n < nItems ? say("first_items", { n: number(n) }) : "";
      buttons.push([say("csv_contests", { which }), say("save_contests", { which }), () => saveAsCsv("contests", contestRows())]);
    }
    offer(figure, buttons);
  }
  for (const box of document.querySelectorAll(".tabular:not([data-name=contests])")) {
    const table = box.querySelector("caption").textContent;
    offer(box, [["CSV", say("save_table", { table }), () => saveAsCsv(box.dataset.name, cellsOf(box.querySelector("table")))]]);
  }

  /* ------------------------------------------------------------------ the map: reading a ballot */

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
    pairs.slice(0, MAX_LINES).forEach((pair) => element("p", pair.join(" > "), tip));
    if (pairs.length > MAX_LINES) element("p", say("more_pairs", { n: pairs.length - MAX_LINES }), tip);
    if (!pairs.length) element("p", say("no_preference"), tip);
  };

  const listPositions = (row) => {
    const levels = buckets(data.ranks[row]);
    const free = data.ranks[row].filter((rank) => rank < 0).length;
    if (levels.length < 2 && !(free && levels.length)) {
      return element("p", say(data.approvals ? "approves_all_or_none" : "no_preference"), tip);
    }
    if (data.approvals) return element("p", say("approves", { names: levels[0].join(", ") }), tip);
    const list = element("ol", "", tip);
    let position = 1;
    levels.slice(0, MAX_LINES).forEach((names) => {
      const line = element("li", "", list);
      element("span", names.length > 1 ? `${position}=` : `${position}`, line);
      element("span", listed(names, 6), line);
      position += names.length;
    });
    if (levels.length > MAX_LINES) element("p", say("more_positions", { n: levels.length - MAX_LINES }), tip);
    if (free) element("p", say("free_items", { n_items: countOf(free, data.nouns.item, data.nouns.items) }), tip);
  };

  const describe = (row) => {
    tip.replaceChildren();
    element("b", voters(data.voters[row]), tip);
    if (data.pairs) listPairs(data.pairs[row]);
    else listPositions(row);
    if (cut.names.length > 1) element("p", say("cluster", { name: cut.names[cut.labels[row]] }), tip);
    if (data.groups.length) {
      const parts = data.groups.map((name, g) => [name, data.byGroup[row][g]]).filter((part) => part[1]);
      element("p", parts.map((part) => `${part[0]} ${number(part[1])}`).join(", "), tip);
    }
  };

  const placeTip = (point) => {
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
    placeTip(point);
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
    /* A point under the pointer precedes a near one, and a small one a large one. */
    const cost = (p) => {
      const d = Math.hypot(p.x - x, p.y - y);
      return d <= p.r ? p.r / 1000 : d - p.r;
    };
    const nearest = best(points, cost);
    if (nearest && cost(nearest) < POINTER_DISTANCE * Math.max(scaleOf(), 1)) show(nearest);
    else hide();
  };
  map.addEventListener("pointermove", pointAt);
  map.addEventListener("pointerleave", hide);

  /* One point can be reached with the Tab key; the arrow keys move from it to its neighbours. */
  const moveFocus = (point, focus) => {
    for (const other of points) other.circle.setAttribute("tabindex", "-1");
    point.circle.setAttribute("tabindex", "0");
    if (focus) point.circle.focus();
  };
  const directions = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  const byCircle = new Map(points.map((point) => [point.circle, point]));
  /* Focus listeners are on the box around the map: an SVG element with one would become a stop of the Tab key. */
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
    if (event.key in directions) {
      const [dx, dy] = directions[event.key];
      to = best(points, (p) => {
        const along = (p.x - from.x) * dx + (p.y - from.y) * dy;
        const across = Math.abs((p.x - from.x) * dy) + Math.abs((p.y - from.y) * dx);
        return p !== from && along > 0.5 ? along + 2 * across : Infinity;
      });
    } else if (event.key === "Home") to = points[0];
    else if (event.key === "Escape") return hide();
    else return;
    event.preventDefault();
    if (to) moveFocus(to, true);
  });
  moveFocus(points[0], false);

  const byColour = (byGroup) => {
    map.classList.toggle("by-group", byGroup);
    map.classList.toggle("by-cluster", !byGroup);
    for (const key of document.querySelectorAll(".by-group-only")) key.hidden = !byGroup;
    for (const key of document.querySelectorAll(".by-cluster-key")) key.hidden = byGroup || cut !== original;
  };
  const colours = [...document.querySelectorAll(".switch input")];
  for (const choice of colours) {
    choice.addEventListener("change", () => byColour(choice.value === "group"));
    if (choice.checked) choice.dispatchEvent(new Event("change"));
  }

  /* ------------------------------------------------------------------ description of several ballots */

  /* Mean positions, from 1, over all completions of a ballot. */
  const positionsOf = (row) => {
    const positions = new Array(nItems).fill((nItems + 1) / 2);
    if (data.pairs) {
      for (const [better, worse] of data.pairs[row]) {
        positions[itemNumber.get(better)] -= 0.5;
        positions[itemNumber.get(worse)] += 0.5;
      }
      return positions;
    }
    const ranks = data.ranks[row];
    const sizes = [];
    for (const rank of ranks) if (rank >= 0) sizes[rank] = (sizes[rank] ?? 0) + 1;
    const middle = [];
    let before = 0;
    for (const size of sizes) {
      middle.push(before + (size + 1) / 2);
      before += size;
    }
    ranks.forEach((rank, item) => {
      if (rank >= 0) positions[item] = (middle[rank] * (nItems + 1)) / (before + 1);
    });
    return positions;
  };
  const itemNumber = new Map(data.items.map((name, item) => [name, item]));

  const firstOf = (row) => {
    if (data.pairs) {
      const worse = new Set(data.pairs[row].map((pair) => pair[1]));
      return [...new Set(data.pairs[row].map((pair) => pair[0]))].filter((x) => !worse.has(x)).map((x) => itemNumber.get(x));
    }
    const ranks = data.ranks[row];
    if (!ranks.some((rank) => rank !== 0)) return [];
    return ranks.flatMap((rank, item) => (rank === 0 ? [item] : []));
  };

  /* Shares of first choices are of the voters with a preference, shares of approvals of all voters. */
  const summary = (rows) => {
    const positions = new Array(nItems).fill(0);
    const firsts = new Array(nItems).fill(0);
    let [nVoters, nStated] = [0, 0];
    for (const row of rows) {
      const weight = data.weights[row];
      nVoters += weight;
      positionsOf(row).forEach((position, item) => (positions[item] += weight * position));
      const first = firstOf(row);
      if (first.length) nStated += weight;
      for (const item of first) firsts[item] += data.approvals ? weight : weight / first.length;
    }
    const approveAll = data.approvals ? data.approveAllShare * (nVoters - nStated) : 0;
    const total = (data.approvals ? nVoters : nStated) || 1;
    return {
      nVoters,
      total,
      positions: positions.map((x) => x / nVoters),
      firsts: firsts.map((x) => (x + approveAll) / total),
    };
  };
  const everyRow = data.weights.map((_, row) => row);
  const overall = summary(everyRow);
  const sampled = overall.nVoters < data.nVoters;
  const ofSample = sampled ? say("of_sample", { n: number(overall.nVoters) }) : "";
  /* Smaller is better: the mean position, or the negative percentage of approvals. */
  const standing = (found) => (data.approvals ? found.firsts.map((share) => -100 * share) : found.positions);
  const overallStanding = standing({ positions: data.positions, firsts: data.shares });
  const inOrder = (found) => {
    const values = standing(found);
    return data.items.map((_, item) => item).sort((a, b) => values[a] - values[b]);
  };
  const orderText = (found, limit) => inOrder(found).slice(0, limit).map((item) => data.items[item]).join(" > ");

  const panel = document.getElementById("explored");
  const showPanel = (title, ...lines) => {
    panel.replaceChildren();
    panel.hidden = false;
    element("h3", title, panel);
    for (const line of lines.filter(Boolean)) element("p", line, panel);
  };

  /* ------------------------------------------------------------------ ballots selected */

  const selected = new Set();
  const markSelection = () => {
    for (const point of points) point.circle.classList.toggle("chosen", selected.has(point.row));
    map.classList.toggle("choosing", selected.size > 0);
  };
  const showSelection = () => {
    markSelection();
    if (!selected.size) {
      panel.hidden = true;
      return;
    }
    const found = summary([...selected]);
    const values = standing(found);
    const shifts = selected.size < everyRow.length
      ? data.items
          .map((name, item) => [overallStanding[item] - values[item], name])
          .sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]))
          .filter(([shift]) => Math.abs(shift) >= data.minShift)
          .slice(0, 6)
      : [];
    const first = found.firsts.indexOf(Math.max(...found.firsts));
    const signed = (shift) => `${shift > 0 ? "+" : "−"}${Math.abs(shift).toFixed(data.approvals ? 0 : 1)}`;
    const shares = { name: data.items[first], share: percent(found.firsts[first]), all: percent(data.shares[first]) };
    const size = { n_ballots: ballots(selected.size), n_voters: voters(found.nVoters), sample: ofSample };
    showPanel(
      say("selected", { ...size, share: percent(found.nVoters / overall.nVoters) }),
      say(data.approvals ? "order_approvals" : "order_positions", { order: orderText(found, 8) + (nItems > 8 ? " > …" : "") }),
      found.firsts[first] > 0 && say(data.approvals ? "approval" : "first_choice", shares),
      shifts.length && say("shifts", { shifts: shifts.map(([shift, name]) => `${name} ${signed(shift)}`).join(", ") }),
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

  /* ------------------------------------------------------------------ another number of clusters */

  const partsOf = (nClusters) => {
    const n = data.mergers.length + 1;
    const top = Array.from({ length: 2 * n - 1 }, (_, node) => node);
    for (let step = n - nClusters - 1; step >= 0; step--) for (const child of data.mergers[step]) top[child] = top[n + step];
    const rows = new Map();
    for (let leaf = 0; leaf < n; leaf++) rows.set(top[leaf], [...(rows.get(top[leaf]) ?? []), leaf]);
    const weigh = (part) => part.reduce((sum, row) => sum + data.weights[row], 0);
    return [...rows.values()].sort((a, b) => weigh(b) - weigh(a));
  };

  /* Each cluster is named after the first choice with the largest lift, weighted by its share; no two after the same. */
  const nameParts = (found) => {
    const differences = [];
    found.forEach((part, index) => {
      part.firsts.forEach((share, item) => {
        const rest = overall.total - part.total || 1;
        const others = Math.max((overall.firsts[item] * overall.total - share * part.total) / rest, 0);
        const lift = share / Math.max(overall.firsts[item], 1e-12);
        differences.push([share > 0 ? share * Math.log(lift) : 0, index, item, share, others]);
      });
    });
    differences.sort((a, b) => b[0] - a[0]);
    const names = found.map((_, index) => [letter(index), ""]);
    const used = new Set();
    for (const [, index, item, share, others] of differences) {
      if (names[index][1] || used.has(item)) continue;
      const label = say(data.approvals ? "label_approval" : "label_first", { name: data.items[item] });
      const distinction = say("distinction", { share: percent(share), others: percent(others) });
      names[index] = [`${letter(index)} · ${label}`, distinction];
      used.add(item);
    }
    return names;
  };

  const cutInto = (nClusters) => {
    const nOriginal = Math.max(original.names.length, 1);
    if (nClusters === nOriginal) {
      cut = original;
      panel.hidden = true;
    } else {
      const parts = partsOf(nClusters);
      const found = parts.map(summary);
      const named = nameParts(found);
      const labels = new Array(data.weights.length).fill(0);
      parts.forEach((rows, index) => rows.forEach((row) => (labels[row] = index)));
      cut = { labels, names: named.map(([name]) => name) };
      showPanel(
        say("recut", { n: nClusters }),
        nClusters > nOriginal && say("not_supported"),
        sampled && say("sample_note", { n_voters: voters(overall.nVoters), total: number(data.nVoters) }),
      );
      const list = element("ul", "", panel);
      list.className = "parts";
      found.forEach((part, index) => {
        const line = element("li", "", list);
        const name = named[index].join("");
        line.dataset.name = name;
        element("span", "", line).className = `dot k${Math.min(index, COLOURS)}`;
        const size = { n_voters: voters(part.nVoters), share: percent(part.nVoters / overall.nVoters) };
        element("span", say("cluster_line", { name, ...size, order: orderText(part, 5) }), line);
      });
    }
    for (const point of points) {
      const group = [...point.circle.classList].find((name) => name.startsWith("g"));
      point.circle.setAttribute("class", `k${Math.min(cut.labels[point.row], COLOURS)} ${group}`);
    }
    map.classList.toggle("recut", cut !== original);
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

  /* ------------------------------------------------------------------ finding an item */

  const search = document.getElementById("search");
  const find = () => {
    const wanted = search.value.trim().toLowerCase();
    const exact = data.items.findIndex((name) => name.toLowerCase() === wanted);
    const item = exact >= 0 ? exact : data.items.findIndex((name) => wanted && name.toLowerCase().includes(wanted));
    for (const row of document.querySelectorAll(".heat tr")) row.classList.toggle("looked", Number(row.dataset.item) === item);
    selected.clear();
    if (item < 0) {
      showSelection();
      if (wanted) showPanel(say("not_found"));
      return;
    }
    for (const row of everyRow) if (firstOf(row).includes(item)) selected.add(row);
    markSelection();
    const [wins, losses] = [[], []];
    const index = data.contestItems.indexOf(item);
    data.contestItems.forEach((other, column) => {
      const margin = index < 0 ? 0 : data.ahead[index][column] - data.ahead[column][index];
      if (margin > 0) wins.push(data.items[other]);
      if (margin < 0) losses.push(data.items[other]);
    });
    const position = { position: data.order.indexOf(item) + 1, n: nItems, mean: data.positions[item].toFixed(1) };
    showPanel(
      data.items[item],
      say(data.ties ? "board_position" : data.approvals ? "kemeny_position" : "kemeny_and_mean", position),
      say(data.approvals ? "item_approved" : "item_first", { share: percent(data.shares[item]) }),
      wins.length && say("wins", { names: listed(wins, 8) }),
      losses.length && say("loses", { names: listed(losses, 8) }),
    );
  };
  search.addEventListener("change", find);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") find();
  });
})();
