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
  let current = null;

  /* Names come from the data: they are only ever set as text, never as markup. */
  const element = (name, text, parent) => {
    const made = document.createElement(name);
    made.textContent = text;
    parent.append(made);
    return made;
  };

  const count = (n) => `${n.toLocaleString("en")} ${n === 1 ? "voter" : "voters"}`;

  const buckets = (ranks) => {
    const found = [];
    ranks.forEach((rank, item) => {
      if (rank >= 0) (found[rank] ??= []).push(known.items[item]);
    });
    return found;
  };

  const listPairs = (pairs) => {
    pairs.slice(0, LINES).forEach((pair) => element("p", pair.join(" > "), tip));
    if (pairs.length > LINES) element("p", `and ${pairs.length - LINES} more pairs`, tip);
    if (!pairs.length) element("p", "no preference", tip);
  };

  const listPlaces = (row) => {
    const list = element("ol", "", tip);
    const levels = buckets(known.ranks[row]);
    let place = 1;
    levels.slice(0, LINES).forEach((names) => {
      const line = element("li", "", list);
      element("span", names.length > 1 ? `${place}=` : `${place}`, line);
      const shown = names.slice(0, 6).join(", ");
      element("span", names.length > 6 ? `${shown} and ${names.length - 6} more` : shown, line);
      place += names.length;
    });
    if (levels.length > LINES) element("p", `and ${levels.length - LINES} more places`, tip);
    const free = known.ranks[row].filter((rank) => rank < 0).length;
    if (free) element("p", `${free} ${free === 1 ? "item" : "items"} anywhere`, tip);
  };

  const describe = (row) => {
    tip.replaceChildren();
    element("b", count(known.voters[row]), tip);
    if (known.pairs) listPairs(known.pairs[row]);
    else listPlaces(row);
    if (known.clusters.length) element("p", `Cluster ${known.clusters[known.labels[row]]}`, tip);
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

  for (const choice of document.querySelectorAll(".switch input")) {
    choice.addEventListener("change", () => {
      const byGroup = choice.value === "group";
      map.classList.toggle("by-group", byGroup);
      map.classList.toggle("by-cluster", !byGroup);
      for (const key of document.querySelectorAll(".by-group-only")) key.hidden = !byGroup;
    });
    if (choice.checked) choice.dispatchEvent(new Event("change"));
  }
})();
