// What someone who reads the page with a screen reader, or with weak eyes, would trip over. Evaluates to a list.
(() => {
  const withoutNames = () => {
    const name = (element) => {
      const by = element.getAttribute("aria-labelledby");
      if (by) return by.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
      return (element.getAttribute("aria-label") || [...(element.labels ?? [])].map((label) => label.textContent).join(" ") || element.textContent || "").trim();
    };
    const found = [];
    for (const element of document.querySelectorAll("button, input, textarea, select, a, progress, [role=tab], [role=tabpanel], [role=region], section, nav")) {
      if (!name(element)) found.push(`no name: ${element.outerHTML.slice(0, 80)}`);
    }
    for (const image of document.querySelectorAll("img:not([alt])")) found.push(`no alt: ${image.src}`);
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    ids.filter((id, k) => ids.indexOf(id) !== k).forEach((id) => found.push(`id twice: ${id}`));
    for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "for"]) {
      for (const element of document.querySelectorAll(`[${attribute}]`)) {
        for (const id of element.getAttribute(attribute).split(" ")) if (!document.getElementById(id)) found.push(`${attribute} to nothing: ${id}`);
      }
    }
    const levels = [...document.querySelectorAll("h1, h2, h3, h4")].filter((h) => h.offsetParent).map((h) => Number(h.tagName[1]));
    levels.forEach((level, k) => { if (level > (levels[k - 1] ?? 0) + 1) found.push(`heading ${level} after ${levels[k - 1]}`); });
    if (!document.documentElement.lang) found.push("no language");
    if (document.querySelectorAll("main").length !== 1) found.push("not one main");
    for (const element of document.querySelectorAll("[tabindex]")) if (element.tabIndex > 0) found.push("positive tabindex");
    return found;
  };

  const withoutContrast = () => {
    const parse = (color) => color.match(/[\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
      .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const color = parse(getComputedStyle(at).backgroundColor);
        if (color.length < 4 || color[3] > 0.99) return color;
      }
      return [255, 255, 255];
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (!walker.currentNode.textContent.trim() || !element.offsetParent || element.closest(".visually-hidden, .skip, option, :disabled")) continue;
      const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05);
      if (ratio < 4.5) found.push(`${ratio.toFixed(2)}: ${walker.currentNode.textContent.trim().slice(0, 40)}`);
    }
    return found;
  };

  return [...withoutNames(), ...withoutContrast()];
})()
