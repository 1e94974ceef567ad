import { useEffect, useState } from "preact/hooks";
import { useSession } from "../../../state/session.tsx";
import { isOpen, type Upload, UploadQueue } from "./upload-queue.ts";

/** One for who is signed in: whoever comes next does not see what the one before has sent. */
let current: { readonly session: string; readonly queue: UploadQueue } | null = null;

function queueOf(session: string): UploadQueue {
  if (current?.session !== session) {
    current?.queue.end();
    current = { session, queue: new UploadQueue() };
  }
  return current.queue;
}

/** The files that are on their way, and have been. Leaving the console while some are is asked about. */
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
