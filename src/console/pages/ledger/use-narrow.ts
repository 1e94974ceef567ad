import { useEffect, useState } from "preact/hooks";

/** As wide as `style/layout.css` takes for a telephone. */
const NARROW = "(max-width: 760px)";

export function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const listener = () => setNarrow(query.matches);
    query.addEventListener("change", listener);
    return () => query.removeEventListener("change", listener);
  }, []);
  return isNarrow;
}
