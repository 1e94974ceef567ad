import type { RefObject } from "preact";
import { useCallback, useEffect, useRef } from "preact/hooks";

/** Pixels from the end at which a reader counts as being there. */
const NEAR = 24;

/**
 * Keeps what scrolls at its end while its reader is there: who scrolls up reads in peace, and who comes back to the end
 * follows again. `follow` is to be called when it has become longer.
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
      // It grows between a scroll of ours and its event: upwards, nobody but the reader moves it.
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
