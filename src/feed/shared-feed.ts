import Type from "typebox";
import type { Clock } from "../base/clock.ts";
import { validator } from "../base/schema.ts";
import { type Bus, MESSAGE_BYTES } from "../nodes/bus.ts";
import { TOPICS, type Topic } from "./channel.ts";
import { publishedEvent } from "./event-schema.ts";
import type { FeedEvent } from "./events.ts";
import type { FeedReaders, FeedRelay } from "./relay.ts";

/** How long changes are collected, so frequent changes to the same object are passed on once. */
const GATHER_MS = 50;
/** The shortest time between two reports of the ledgers' sizes. */
const SIZES_MS = 1_000;
/** The most changes of one workspace that are passed on one by one. Beyond that, readers read everything again. */
const GATHERED_LIMIT = 1_000;
/** The most bytes of keys or of an event in one message, which escapes them as JSON. */
const TEXT_BYTES = MESSAGE_BYTES / 2 - 100;

const KEYS = validator(Type.Array(Type.String()));

/** The changes of one workspace that have not been passed on. */
interface Gathered {
  /** The latest event of each name and key. */
  readonly events: Map<string, FeedEvent>;
  readonly touched: Map<Topic, Set<string>>;
  count: number;
  isOver: boolean;
}

/**
 * Passes changes between nodes that share a store, as messages. They name what has changed, and each node reads what
 * its own readers may see. Every change is passed on, since a node that had to be asked first would miss what
 * happens before it is.
 */
export class SharedFeed implements FeedRelay {
  readonly #bus: Bus;
  readonly #clock: Pick<Clock, "after">;
  readonly #readers: FeedReaders;
  #gathered = new Map<number, Gathered>();
  #sizes = new Map<number, number>();
  #cancel: (() => void) | null = null;
  #cancelSizes: (() => void) | null = null;

  constructor(bus: Bus, clock: Pick<Clock, "after">, readers: FeedReaders) {
    this.#bus = bus;
    this.#clock = clock;
    this.#readers = readers;
    this.#listen();
  }

  published(workspaceId: number, event: FeedEvent): void {
    const gathered = this.#gather(workspaceId);
    if (gathered.isOver) return;
    gathered.count += 1;
    gathered.events.set(`${event.name} ${event.key}`, event);
  }

  touched(workspaceId: number, topic: Topic, key: string): void {
    const gathered = this.#gather(workspaceId);
    const keys = gathered.touched.get(topic) ?? new Set();
    if (gathered.isOver || keys.has(key)) return;
    gathered.count += 1;
    keys.add(key);
    gathered.touched.set(topic, keys);
  }

  grown(workspaceId: number, size: number): void {
    this.#sizes.set(workspaceId, size);
    this.#cancelSizes ??= this.#clock.after(SIZES_MS, () => this.#flushSizes());
  }

  flush(): void {
    this.#flushChanges();
    this.#flushSizes();
  }

  #flushChanges(): void {
    this.#cancel?.();
    this.#cancel = null;
    const all = this.#gathered;
    this.#gathered = new Map();
    for (const [workspace, gathered] of all) this.#send(workspace, gathered);
  }

  #flushSizes(): void {
    this.#cancelSizes?.();
    this.#cancelSizes = null;
    const sizes = this.#sizes;
    this.#sizes = new Map();
    for (const [workspace, size] of sizes) this.#bus.send("feed.grown", { workspace, size });
  }

  #gather(workspaceId: number): Gathered {
    this.#cancel ??= this.#clock.after(GATHER_MS, () => this.#flushChanges());
    const known = this.#gathered.get(workspaceId);
    if (known) {
      if (known.count >= GATHERED_LIMIT) known.isOver = true;
      return known;
    }
    const gathered: Gathered = { events: new Map(), touched: new Map(), count: 0, isOver: false };
    this.#gathered.set(workspaceId, gathered);
    return gathered;
  }

  #send(workspace: number, { events, touched, isOver }: Gathered): void {
    const texts = [...events.values()].map((event) => JSON.stringify(event));
    const lists = [...touched].flatMap(([topic, keys]) =>
      inMessages([...keys]).map((list) => [topic, list] as const),
    );
    if (
      isOver ||
      [...texts, ...lists.map(([, list]) => list)].some((text) => Buffer.byteLength(text) > TEXT_BYTES)
    ) {
      this.#bus.send("feed.reset", { workspace });
      return;
    }
    for (const event of texts) this.#bus.send("feed.published", { workspace, event });
    for (const [topic, keys] of lists) this.#bus.send("feed.touched", { workspace, topic, keys });
  }

  #listen(): void {
    const bus = this.#bus;
    const readers = this.#readers;
    bus.listen("feed.published", ({ workspace, event: text }) => {
      const event = typeof text === "string" ? publishedEvent(text) : undefined;
      if (typeof workspace === "number" && event) readers.published(workspace, event);
    });
    bus.listen("feed.touched", ({ workspace, topic, keys: text }) => {
      const known = TOPICS.find((each) => each === topic);
      if (typeof workspace !== "number" || !known) return;
      for (const key of keysIn(text)) readers.touched(workspace, known, key);
    });
    bus.listen("feed.grown", ({ workspace, size }) => {
      if (typeof workspace === "number" && typeof size === "number") readers.grown(workspace, size);
    });
    bus.listen("feed.reset", ({ workspace }) => {
      if (typeof workspace === "number") readers.reset(workspace);
    });
    bus.missed.listen(() => readers.reset());
  }
}

/** Keys as JSON arrays that fit in a message, unless a single key does not. */
function inMessages(keys: readonly string[]): readonly string[] {
  const lists: string[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const key of keys) {
    const more = Buffer.byteLength(JSON.stringify(key)) + 1;
    if (bytes + more > TEXT_BYTES) {
      lists.push([]);
      bytes = 1;
    }
    lists.at(-1)?.push(key);
    bytes += more;
  }
  return lists.map((list) => JSON.stringify(list));
}

function keysIn(text: unknown): readonly string[] {
  if (typeof text !== "string") return [];
  try {
    const keys: unknown = JSON.parse(text);
    return KEYS.is(keys) ? keys : [];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return [];
  }
}
