import { useEffect, useState } from "preact/hooks";

/** As in the style sheet: below this width a row becomes a card of two lines. */
const NARROW = "(max-width: 760px)";

/** Whether the window is so narrow that tables become cards. */
export function useNarrowScreen(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const update = () => setNarrow(query.matches);
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, []);
  return isNarrow;
}
