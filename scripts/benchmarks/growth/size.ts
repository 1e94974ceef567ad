/** How much a data directory has recorded. All of it grows together. */
export interface HistorySize {
  readonly entries: number;
  readonly tasks: number;
  readonly agents: number;
  readonly documents: number;
}

/** Four entries are those of the task's run; the others are reads and calls outside of tasks. */
export const ENTRIES_PER_TASK = 10;
const ENTRIES_PER_AGENT = 10_000;
export const DOCUMENTS_PER_AGENT = 100;
/** Each step is this many times as long as the one before. */
const STEP = 10;
const STEPS = 3;

/** The measured sizes, smallest first; the last has this many entries. */
export function sizesUpTo(entries: number): HistorySize[] {
  return Array.from({ length: STEPS }, (_, step) => sizeOf(Math.round(entries / STEP ** (STEPS - 1 - step))));
}

function sizeOf(entries: number): HistorySize {
  const tasks = Math.ceil(entries / ENTRIES_PER_TASK);
  const agents = Math.max(1, Math.round(entries / ENTRIES_PER_AGENT));
  return { entries: tasks * ENTRIES_PER_TASK, tasks, agents, documents: agents * DOCUMENTS_PER_AGENT };
}

export function agentName(index: number): string {
  return `agent-${String(index).padStart(4, "0")}`;
}

/** The memory scope of an agent, which has the same number of documents in every history. */
export function scopeOf(agent: number): string {
  return `teams/${agentName(agent)}`;
}

/** `1,000,000 entries, 100,000 tasks` */
export function sizeText({ entries, tasks }: Pick<HistorySize, "entries" | "tasks">): string {
  return `${entries.toLocaleString("en-US")} entries, ${tasks.toLocaleString("en-US")} tasks`;
}
