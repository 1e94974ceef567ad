import { useEffect, useRef, useState } from "preact/hooks";
import type { Task, TaskEvents } from "../../../http/api.ts";
import { addressOf } from "../../api/client.ts";
import { Activity, type ActivityItem, EVENT_NAMES } from "./activity.ts";

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 10_000;

export interface TaskActivity {
  readonly pieces: readonly ActivityItem[];
  /** The final task, once its last event has arrived. */
  readonly finished: Task | null;
  /** Whether the stream is interrupted before the task has ended. */
  readonly isLost: boolean;
}

/**
 * Reads a task's events from start to end, continuing after a lost connection. Changing `round` starts over; `wrote`
 * is called after text was written into the page.
 */
export function useActivity(id: string, round: number, wrote: () => void): TaskActivity {
  const [watched, setWatched] = useState<TaskActivity>({ pieces: [], finished: null, isLost: false });
  const writer = useRef(wrote);
  writer.current = wrote;
  useEffect(() => {
    let isLost = false;
    let frame: number | null = null;
    const show = () => {
      // Hundreds of events of a finished task arrive at once.
      frame ??= requestAnimationFrame(() => {
        frame = null;
        setWatched({ pieces: activity.pieces, finished: activity.finished, isLost });
      });
    };
    const activity = new Activity(show, () => writer.current());
    const end = follow(id, activity, (lost) => {
      if (lost === isLost) return;
      isLost = lost;
      show();
    });
    return () => {
      end();
      if (frame !== null) cancelAnimationFrame(frame);
    };
    // `round` triggers the effect, although it is not used in it.
  }, [id, round]);
  return watched;
}

/** @returns a function that stops reading */
function follow(id: string, activity: Activity, lost: (isLost: boolean) => void): () => void {
  let source: EventSource | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let wait = FIRST_RETRY_MS;

  function open(): void {
    const opened = new EventSource(
      addressOf("/v1/tasks/:id/events", { id }, activity.last === 0 ? {} : { after: activity.last }),
    );
    source = opened;
    for (const name of EVENT_NAMES) {
      opened.addEventListener(name, ({ data, lastEventId }: MessageEvent<string>) => {
        const parsed = JSON.parse(data) as TaskEvents[typeof name];
        activity.take(Number(lastEventId), name, parsed);
        // The server now closes the stream, and a browser would mistake that for a lost connection.
        if (name === "task.finished") opened.close();
      });
    }
    opened.addEventListener("open", () => {
      wait = FIRST_RETRY_MS;
      lost(false);
    });
    opened.addEventListener("error", () => {
      if (activity.finished) return;
      lost(true);
      // The browser reconnects automatically, unless the answer was not a stream.
      if (opened.readyState !== EventSource.CLOSED) return;
      retry = setTimeout(open, wait);
      wait = Math.min(wait * 2, LAST_RETRY_MS);
    });
  }

  open();
  return () => {
    clearTimeout(retry);
    source?.close();
  };
}
