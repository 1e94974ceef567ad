import { useEffect, useState } from "preact/hooks";
import { useSession } from "../../../state/session.tsx";
import { isOpen, type Upload, UploadQueue } from "./upload-queue.ts";

/** One queue for each session, so that the next user does not see the previous user's files. */
let current: { readonly session: string; readonly queue: UploadQueue } | null = null;

function queueOf(session: string): UploadQueue {
  if (current?.session !== session) {
    current?.queue.end();
    current = { session, queue: new UploadQueue() };
  }
  return current.queue;
}

/**
 * Current and finished uploads. While any are running, the console asks for confirmation before the user leaves it.
 */
export function useUploads(): { readonly uploads: readonly Upload[]; readonly queue: UploadQueue } {
  const { session } = useSession();
  const queue = queueOf(session.session?.id ?? session.actor);
  const [uploads, setUploads] = useState(queue.uploads);
  useEffect(() => {
    setUploads(queue.uploads);
    return queue.listen(() => setUploads(queue.uploads));
  }, [queue]);
  const isBusy = uploads.some(({ state }) => isOpen(state));
  useEffect(() => {
    if (!isBusy) return undefined;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isBusy]);
  return { uploads, queue };
}
