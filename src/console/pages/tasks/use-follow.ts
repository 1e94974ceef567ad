import type { RefObject } from "preact";
import { useCallback, useEffect, useRef } from "preact/hooks";

/** Distance from the end, in pixels, within which a reader counts as being at the end. */
const NEAR = 24;

/**
 * Keeps a scrolling element at its end while the reader is there. Scrolling up stops following; returning to the end
 * resumes it. Call `follow` when the content has grown.
 */
export function useFollow(isFollowing: boolean): {
  readonly frame: RefObject<HTMLElement | null>;
  readonly follow: () => void;
} {
  const frame = useRef<HTMLElement>(null);
  const state = useRef({ isFollowing, top: 0 });
  useEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    const scrolled = () => {
      const { scrollTop, scrollHeight, clientHeight } = element;
      // The content may grow between a scroll by this code and its event, but only the reader scrolls up.
      if (scrollTop < state.current.top) state.current.isFollowing = false;
      if (scrollHeight - scrollTop - clientHeight < NEAR) state.current.isFollowing = true;
      state.current.top = scrollTop;
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => element.removeEventListener("scroll", scrolled);
  }, []);
  const follow = useCallback(() => {
    const element = frame.current;
    if (!element || !state.current.isFollowing) return;
    element.scrollTop = element.scrollHeight;
  }, []);
  return { frame, follow };
}
