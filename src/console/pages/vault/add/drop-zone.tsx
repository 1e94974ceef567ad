import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { notify } from "../../../parts/toast.tsx";

/** Accepts files dropped anywhere on the page, and shows that it does while they are dragged over it. */
export function DropZone({
  scope,
  take,
}: {
  readonly scope: string;
  readonly take: (files: readonly File[]) => void;
}): JSX.Element | null {
  const [isOver, setOver] = useState(false);
  const taker = useRef(take);
  taker.current = take;

  useEffect(() => {
    // Each element that is entered or left fires an event; the pointer is over the page while the count is positive.
    let depth = 0;
    const enter = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      depth += 1;
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const over = (event: DragEvent) => {
      // Without this the browser would open the file instead of the page.
      if (holdsFiles(event)) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      depth = 0;
      setOver(false);
      const { files, folders } = filesOf(event.dataTransfer);
      if (folders > 0) {
        notify("Folders can’t be dropped. On the command line: gatehouse vault add", { isBad: true });
      }
      if (files.length > 0) taker.current(files);
    };
    addEventListener("dragenter", enter);
    addEventListener("dragleave", leave);
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragenter", enter);
      removeEventListener("dragleave", leave);
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
    };
  }, []);

  if (!isOver) return null;
  return (
    <div class="vault-drop">
      <p>
        Drop files to add them{scope !== "" && " to "}
        {scope !== "" && <strong>{scope}</strong>}
      </p>
    </div>
  );
}

function holdsFiles({ dataTransfer }: DragEvent): boolean {
  return dataTransfer?.types.includes("Files") === true;
}

function filesOf(data: DataTransfer | null): { readonly files: readonly File[]; readonly folders: number } {
  const files: File[] = [];
  let folders = 0;
  for (const item of data?.items ?? []) {
    if (item.kind !== "file") continue;
    if (item.webkitGetAsEntry()?.isDirectory === true) folders += 1;
    else {
      const file = item.getAsFile();
      if (file) files.push(file);
    }
  }
  return { files, folders };
}
