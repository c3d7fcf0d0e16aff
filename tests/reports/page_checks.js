/* What is wrong with how a page looks: run in a browser, returns sentences. */
() => {
  const wrong = [];
  const name = (node) => `${node.tagName.toLowerCase()} "${node.textContent.trim().slice(0, 40)}"`;
  const shown = (node) => node.getClientRects().length && getComputedStyle(node).visibility !== "hidden" && !node.closest(".unseen, .skip");
  const channels = (colour) => (colour.match(/[\d.]+/g) ?? ["0", "0", "0", "0"]).map(Number);
  const over = (top, below) => {
    const alpha = top[3] ?? 1;
    return [0, 1, 2].map((i) => alpha * top[i] + (1 - alpha) * below[i]);
  };
  const page = channels(getComputedStyle(document.documentElement).backgroundColor);
  const paper = page[3] === 0 ? [255, 255, 255] : page;
  const behind = (node) => {
    const layers = [];
    for (let each = node; each; each = each.parentElement) layers.push(channels(getComputedStyle(each).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), paper);
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };

  const texts = [...document.querySelectorAll("body *")].filter(
    (node) => shown(node) && [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()),
  ).filter((node) => !["SCRIPT", "STYLE", "OPTION"].includes(node.tagName));
  for (const node of texts) {
    const svg = node.closest("svg");
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    const style = getComputedStyle(node);
    const size = parseFloat(style.fontSize) * scale;
    if (size < 11.95) wrong.push(`${name(node)} is ${size.toFixed(1)} px high`);
    const ink = channels(svg ? style.fill : style.color);
    const ratio = contrast(over(ink, behind(svg ?? node)), behind(svg ?? node));
    if (ratio < 4.5) wrong.push(`${name(node)} has a contrast of ${ratio.toFixed(2)}`);
    const box = node.getBoundingClientRect();
    const rolled = node.closest(".scroll, pre");
    if (!rolled && (box.left < -0.5 || box.right > innerWidth + 0.5)) wrong.push(`${name(node)} sticks out of the page`);
    if (!svg && style.overflow === "hidden" && node.scrollWidth > node.clientWidth + 1) wrong.push(`${name(node)} is clipped`);
  }
  /* What a picture says where it is large it says where it is small, too: one of the two is seen. */
  const said = new Map();
  for (const part of document.querySelectorAll("svg [data-says]")) {
    const key = `${part.closest("figure")?.dataset.name}: ${part.dataset.says}`;
    said.set(key, (said.get(key) ?? false) || shown(part));
  }
  for (const [key, seen] of said) if (!seen) wrong.push(`nothing is seen of ${key}`);
  for (const figure of [...document.querySelectorAll("figure")].filter(shown)) {
    const pictures = [...figure.querySelectorAll("svg")].filter((svg) => !svg.closest(".to-save"));
    if (!pictures.length) continue;
    const written = pictures.filter(shown).flatMap((svg) => [...svg.querySelectorAll("text")].filter(shown));
    if (!written.length) wrong.push(`the picture ${figure.dataset.name} has no words`);
  }
  /* Names that are cut are still told apart. */
  for (const list of document.querySelectorAll("svg:not(.map), ul.key, .heat thead, .heat tbody")) {
    const names = [...list.querySelectorAll("text.label:not(.strong), text.leaf, li, thead th, tbody th")].filter(shown);
    const cut = names.map((node) => node.textContent.trim()).filter((text) => text.includes("…"));
    const twice = cut.filter((text, place) => cut.indexOf(text) !== place);
    if (twice.length) wrong.push(`"${twice[0]}" stands for two different names`);
  }
  for (const svg of [...document.querySelectorAll("svg")].filter(shown)) {
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].filter(shown).map((node) => [node, node.getBoundingClientRect()]);
    boxes.forEach(([node, box], place) => {
      if (box.left < frame.left - 1.5 || box.right > frame.right + 1.5) wrong.push(`${name(node)} sticks out of its picture`);
      for (const [other, next] of boxes.slice(place + 1)) {
        const wide = Math.min(box.right, next.right) - Math.max(box.left, next.left);
        const high = Math.min(box.bottom, next.bottom) - Math.max(box.top, next.top);
        if (wide > 1 && high > 3) wrong.push(`${name(node)} and ${name(other)} overlap`);
      }
    });
  }
  for (const box of [...document.querySelectorAll(".scroll")].filter(shown)) {
    const hint = box.parentElement.querySelector(".hint");
    if (box.scrollWidth > box.clientWidth + 1 && hint.hidden) wrong.push("a table scrolls sideways without saying so");
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page scrolls sideways");
  return [...new Set(wrong)];
}
