import { Life, type Route } from "../life.ts";
import type { NodeCluster } from "./cluster.ts";

/** How long a client waits for a response. Streams have no limit. */
const NOTHING_MS = 15_000;

/** A time of work, whose calls go to the servers in turn. Its end breaks off what is still being read. */
export class NodesLife extends Life {
  readonly #cluster: NodeCluster;
  readonly #over = new AbortController();

  constructor(cluster: NodeCluster, dropped: (what: string) => void) {
    super("", cluster.admin, dropped);
    this.#cluster = cluster;
  }

  override end(): void {
    super.end();
    // Calls get some time for their answer, so that what they did is known.
    setTimeout(() => this.#over.abort(), 2_000);
  }

  protected override route(path: string): Route {
    const cluster = this.#cluster;
    const node = cluster.next();
    // A resume waits for the ends of stopped tasks, which a server that was killed may have left for the others to write.
    const nodes = path.endsWith("/resume") ? cluster.nodes : [node];
    const mayBeMissing = () => cluster.isDisturbed || nodes.some((each) => each === null || each.isDisturbed);
    const overdue = new AbortController();
    const timer = setTimeout(() => {
      if (mayBeMissing()) overdue.abort();
    }, NOTHING_MS * cluster.patience);
    timer.unref();
    return {
      url: node?.url ?? "http://127.0.0.1:9",
      mayFail: () => this.isOver || mayBeMissing() || overdue.signal.aborted,
      signal: AbortSignal.any([this.#over.signal, overdue.signal]),
    };
  }
}
