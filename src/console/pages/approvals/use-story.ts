import { useEffect, useState } from "preact/hooks";
import type { ApprovalName } from "./address.ts";
import { type CallHistory, EMPTY_STORY, STORY_EVENTS, tell } from "./story.ts";

/** Hundreds of events may arrive at once, so they are drawn at most this often. */
const DRAWN_EVERY_MS = 100;

export interface ReadStory {
  readonly story: CallHistory;
  /** Whether the events could not be read. */
  readonly isRefused: boolean;
}

/** Reads a task's events up to the request for approval. Null reads nothing. */
export function useStory(name: ApprovalName | null): ReadStory {
  const [read, setRead] = useState<ReadStory>({ story: EMPTY_STORY, isRefused: false });
  const { task, call } = name ?? { task: null, call: null };
  useEffect(() => {
    setRead({ story: EMPTY_STORY, isRefused: false });
    if (task === null || call === null) return undefined;
    let story = EMPTY_STORY;
    let drawn: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      drawn ??= setTimeout(() => {
        drawn = undefined;
        setRead({ story, isRefused: false });
      }, DRAWN_EVERY_MS);
    };
    const source = new EventSource(`/v1/tasks/${encodeURIComponent(task)}/events`);
    for (const event of STORY_EVENTS) {
      source.addEventListener(event, ({ data }: MessageEvent<string>) => {
        story = tell(story, call, event, JSON.parse(data) as Record<string, unknown>);
        if (story.isWhole) source.close();
        draw();
      });
    }
    source.addEventListener("error", () => {
      // After a broken connection the browser reconnects, continuing after the last event.
      if (source.readyState === EventSource.CLOSED && !story.isWhole) setRead({ story, isRefused: true });
    });
    return () => {
      source.close();
      clearTimeout(drawn);
    };
  }, [task, call]);
  return read;
}
