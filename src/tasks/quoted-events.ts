import type { Db, Tx } from "../store/db.ts";
import { encodeFrame, type TaskEventName } from "./frames.ts";
import type { Task } from "./task.ts";
import { viewTask } from "./view.ts";

/** Blocks of events (64 KiB each) that one transaction goes through. */
const BLOCKS_AT_ONCE = 4;

/**
 * Takes out of a finished task's stored events what its erased payloads said: text after the call of `intentSeq` had its
 * result goes, arguments of calls in `erased` become null, and `task.finished` shows the task as it is read from now on. Ids
 * stay as they are; those of what is gone are left out.
 *
 * @param erased Seqs of the intents whose arguments are erased
 */
export async function eraseEvents(
  db: Db,
  task: Task,
  intentSeq: number,
  erased: ReadonlySet<number>,
): Promise<void> {
  const erase = frameEraser(task, intentSeq, erased);
  const blocks = await db.all<{ first_id: number }>(
    "SELECT first_id FROM task_events WHERE workspace_id = $1 AND task_id = $2 ORDER BY first_id",
    [task.workspaceId, task.id],
  );
  for (let at = 0; at < blocks.length; at += BLOCKS_AT_ONCE) {
    await db.tx(async (tx) => {
      for (const { first_id } of blocks.slice(at, at + BLOCKS_AT_ONCE)) {
        await eraseBlock(tx, [task.workspaceId, task.id, first_id], erase);
      }
    });
  }
}

interface Frame {
  readonly id: number;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Frame for frame, in their order: what is left of it. Null: nothing. Undefined: all of it. */
type FrameEraser = (frame: Frame) => Uint8Array | null | undefined;

function frameEraser(task: Task, intentSeq: number, erased: ReadonlySet<number>): FrameEraser {
  const call = task.toolsCalled.find((each) => each.intentSeq === intentSeq);
  // Where the answer alone holds the document, nobody can say which of its parts do.
  let isAfter = call === undefined;
  const last = {
    ...task,
    output: null,
    toolsCalled: task.toolsCalled.map((each) =>
      erased.has(each.intentSeq) ? { ...each, arguments: null } : each,
    ),
  };
  const silenced: ReadonlySet<unknown> = new Set(
    task.toolsCalled.filter((each) => erased.has(each.intentSeq)).map(({ id }) => id),
  );
  return ({ id, event, data }) => {
    if (event === "tool.result" && data.id === call?.id) isAfter = true;
    const blank = (name: TaskEventName, value: object) => encodeFrame(id, name, value as never);
    if (event === "task.finished") return blank("task.finished", viewTask(last));
    if (event === "tool.call" && silenced.has(data.id)) {
      return blank("tool.call", { ...data, arguments: null });
    }
    return isAfter && event === "output.delta" ? null : undefined;
  };
}

type BlockKey = readonly [workspaceId: number, taskId: string, firstId: number];

async function eraseBlock(tx: Tx, key: BlockKey, erase: FrameEraser): Promise<void> {
  const where = "WHERE workspace_id = $1 AND task_id = $2 AND first_id = $3";
  const row = await tx.get<{ frames: Uint8Array }>(`SELECT frames FROM task_events ${where}`, [...key]);
  if (!row) return;
  const frames: Uint8Array[] = [];
  let isChanged = false;
  for (const text of new TextDecoder().decode(row.frames).split("\n\n").slice(0, -1)) {
    const left = erase(parseFrame(text));
    if (left !== undefined) isChanged = true;
    if (left !== null) frames.push(left ?? new TextEncoder().encode(`${text}\n\n`));
  }
  if (!isChanged) return;
  if (frames.length === 0) await tx.run(`DELETE FROM task_events ${where}`, [...key]);
  else await tx.run(`UPDATE task_events SET frames = $4 ${where}`, [...key, Buffer.concat(frames)]);
}

function parseFrame(text: string): Frame {
  const [id = "", event = "", data = ""] = text.split("\n");
  return {
    id: Number(id.slice("id: ".length)),
    event: event.slice("event: ".length),
    data: JSON.parse(data.slice("data: ".length)),
  };
}
