(() => {
  // Colors of the page have no transparency, except for transparent itself.
  const parse = color => color.match(/[\d.]+/g).map(Number);
  const luminance = color => parse(color).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const background = e => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (parse(color)[3] !== 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const found = { texts: 0, weak: [] };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement, text = texts.currentNode.textContent.trim();
    if (!text || !e.checkVisibility() || e.closest(".unseen, script")) continue;
    found.texts++;
    const [dark, light] = [luminance(getComputedStyle(e).color), luminance(background(e))].sort((a, b) => a - b);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) found.weak.push(`${text}: ${ratio.toFixed(2)}`);
  }
  return found;
})()
