import { useEffect, useState } from "preact/hooks";

type Scheme = "light" | "dark";

/** The page's current colour scheme, for canvases, which style sheets do not reach. */
export function useScheme(): Scheme {
  const [scheme, setScheme] = useState(currentScheme);
  useEffect(() => {
    const update = () => setScheme(currentScheme());
    const query = matchMedia("(prefers-color-scheme: dark)");
    query.addEventListener("change", update);
    const observer = new MutationObserver(update);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      query.removeEventListener("change", update);
      observer.disconnect();
    };
  }, []);
  return scheme;
}

function currentScheme(): Scheme {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
