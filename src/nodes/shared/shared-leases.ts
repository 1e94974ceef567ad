import { type Db, StoreUnavailable, type Tx } from "../../store/db.ts";
import type { Bus } from "../bus.ts";
import type { Leases } from "../leases.ts";
import type { Membership } from "./membership.ts";

/** Takes leases that nobody has, and returns those that this node has. Rows of dead nodes are gone with them. */
const TAKE = `INSERT INTO node_leases (name, node_id)
  SELECT wanted.name, nodes.id FROM unnest($1::text[]) AS wanted (name), nodes WHERE nodes.id = $2
  ON CONFLICT (name) DO UPDATE SET node_id = node_leases.node_id RETURNING name, node_id = $2 AS "isOwn"`;
const HELD = "SELECT 1 FROM node_leases WHERE name = $1 AND node_id = $2 FOR SHARE";

/** The topic of a message that a lease was given up. */
const FREE = "lease.free";

interface RequestedLease {
  readonly begin: () => () => void;
  /** Ends what has begun; null while another node has the lease. */
  end: (() => void) | null;
}

/** Leases as rows that refer to their node's row. */
export class SharedLeases implements Leases {
  readonly #db: Db;
  readonly #membership: Membership;
  readonly #bus: Pick<Bus, "send" | "listen">;
  readonly #wanted = new Map<string, RequestedLease>();
  #taking: Promise<void> | null = null;

  constructor(db: Db, membership: Membership, bus: Pick<Bus, "send" | "listen">) {
    this.#db = db;
    this.#membership = membership;
    this.#bus = bus;
    bus.listen(FREE, () => void this.#renew());
    membership.beat.listen(() => void this.#renew());
    membership.lost.listen(() => this.#endAll());
  }

  hold(name: string, begin: () => () => void): () => void {
    const wanted: RequestedLease = { begin, end: null };
    this.#wanted.set(name, wanted);
    void this.#renew();
    return () => {
      this.#wanted.delete(name);
      if (!wanted.end) return;
      wanted.end();
      wanted.end = null;
      void this.#giveUp(name);
    };
  }

  has(name: string): boolean {
    return (this.#wanted.get(name)?.end ?? null) !== null && !this.#membership.isDoubtful;
  }

  async isHeld(tx: Tx, name: string): Promise<boolean> {
    return (await tx.get(HELD, [name, this.#membership.id])) !== undefined;
  }

  /** Resolves when no lease is being taken. */
  async close(): Promise<void> {
    this.#endAll();
    this.#wanted.clear();
    await this.#taking;
  }

  async #renew(): Promise<void> {
    if (this.#membership.isDoubtful) this.#endAll();
    this.#taking ??= this.#take().finally(() => {
      this.#taking = null;
    });
    await this.#taking;
  }

  /** Never rejects: it is tried again with the next beat. */
  async #take(): Promise<void> {
    // Leases that are asked for together are taken together.
    await Promise.resolve();
    const names = [...this.#wanted.keys()].sort();
    if (names.length === 0) return;
    const { id } = this.#membership;
    let rows: readonly { readonly name: string; readonly isOwn: number }[];
    try {
      rows = await this.#db.tx(null, (tx) => tx.all(TAKE, [`{${names.join(",")}}`, id]));
    } catch (error) {
      if (error instanceof StoreUnavailable || id !== this.#membership.id) return;
      throw error;
    }
    if (id !== this.#membership.id) return;
    for (const { name, isOwn } of rows) {
      const wanted = this.#wanted.get(name);
      if (!wanted) {
        // It was given up while it was being taken.
        if (isOwn) void this.#giveUp(name);
        continue;
      }
      if (isOwn) wanted.end ??= wanted.begin();
      else this.#end(wanted);
    }
  }

  async #giveUp(name: string): Promise<void> {
    try {
      await this.#db.run("DELETE FROM node_leases WHERE name = $1 AND node_id = $2", [
        name,
        this.#membership.id,
      ]);
      this.#bus.send(FREE, { name }, { isUrgent: true });
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  #endAll(): void {
    for (const wanted of this.#wanted.values()) this.#end(wanted);
  }

  #end(wanted: RequestedLease): void {
    wanted.end?.();
    wanted.end = null;
  }
}
