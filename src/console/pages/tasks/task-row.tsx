import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Status } from "../../parts/badge.tsx";
import { countText, creditsText, Lasting, shortId, Time } from "../../parts/text.tsx";
import type { TaskListRow } from "./rows.ts";

/** A task of the list. The whole row links to it. */
export function TaskRowView({
  row,
  wantTitle,
}: {
  readonly row: TaskListRow;
  readonly wantTitle: (id: string) => () => void;
}): JSX.Element {
  const isUnread = row.title === undefined;
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isUnread || !frame.current) return undefined;
    // Rows are rendered somewhat beyond the visible part of the list.
    let leave: (() => void) | undefined;
    const observer = new IntersectionObserver((changes) => {
      leave?.();
      leave = changes.at(-1)?.isIntersecting ? wantTitle(row.id) : undefined;
    });
    observer.observe(frame.current);
    return () => {
      observer.disconnect();
      leave?.();
    };
  }, [isUnread, row.id, wantTitle]);
  return (
    <div class="task-row" ref={frame}>
      <span class="task-status">
        <Status status={row.status} />
      </span>
      <span class="task-agent cut" title={row.agent}>
        {row.agent}
      </span>
      <a class="task-title cut" href={`/console/tasks/${row.id}`} title={row.id}>
        {row.title === undefined || row.title === "" ? <code>{shortId(row.id)}</code> : row.title}
        {row.title === null && <span class="muted">Erased · {shortId(row.id)}</span>}
      </a>
      <span class="task-model cut muted" title={row.model ?? undefined}>
        {row.error ? (
          <span class="task-error">{row.error.code.replaceAll("_", " ")}</span>
        ) : (
          (row.model ?? "–")
        )}
      </span>
      <span class="task-tier number" title={`Tier ${row.tier}`}>
        <span class="unseen">Tier </span>
        {row.tier}
      </span>
      <span class="task-steps number">
        {countText(row.steps)}
        <span class="unseen"> steps</span>
      </span>
      <span class="task-credits number">
        {creditsText(row.credits_consumed)}
        <span class="task-unit"> credits</span>
      </span>
      <span class="task-created">
        <Time at={row.created_at} />
      </span>
      <span class="task-duration">
        <Lasting from={row.started_at} to={row.finished_at} />
      </span>
    </div>
  );
}

/** Column headings. Hidden from screen readers, which read each cell's label instead. */
export function TaskColumns(): JSX.Element {
  return (
    <div class="task-row task-columns" aria-hidden="true">
      <span>Status</span>
      <span>Agent</span>
      <span>Prompt</span>
      <span>Model</span>
      <span class="task-tier">Tier</span>
      <span class="task-steps">Steps</span>
      <span class="task-credits">Credits</span>
      <span class="task-created">Created</span>
      <span class="task-duration">Duration</span>
    </div>
  );
}
