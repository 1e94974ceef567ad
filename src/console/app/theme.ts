/** `system` follows the operating system's setting. */
export type Theme = "system" | "light" | "dark";

const KEY = "gatehouse-theme";

/** The theme chosen in this browser; `system` if the browser stores nothing for this site. */
export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

export function showTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function chooseTheme(theme: Theme): void {
  showTheme(theme);
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
}
