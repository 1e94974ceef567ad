import { createSecret } from "../../../src/access/secret.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import type { Cluster } from "../../../test/support/postgres/cluster.ts";
import { createDatabase } from "../../../test/support/postgres/database.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import type { Target, Workshop } from "../workshop.ts";

const MASTER_KEY = "7".repeat(64);

/** One or more servers with the same content, seen as one. */
export class Nodes implements Target {
  readonly first: Gatehouse;
  readonly others: readonly Gatehouse[];

  private constructor(first: Gatehouse, others: readonly Gatehouse[]) {
    this.first = first;
    this.others = others;
  }

  /** One server with a data directory. */
  static async local(workshop: Workshop, yaml: string): Promise<Nodes> {
    return new Nodes(await workshop.gatehouse({ yaml }), []);
  }

  /**
   * Servers that share a new database.
   * @param yaml the text of each one's gatehouse.yaml
   */
  static async shared(workshop: Workshop, postgres: Cluster, yaml: readonly string[]): Promise<Nodes> {
    const { url } = await createDatabase(postgres.url);
    const admin = createSecret(systemRandom);
    const env = { GATEHOUSE_STORE: url, GATEHOUSE_MASTER_KEY: MASTER_KEY };
    const [first, ...others] = await Promise.all(
      yaml.map((text) => workshop.gatehouse({ yaml: text, admin, env })),
    );
    if (first === undefined) throw new Error("there must be a server");
    return new Nodes(first, others);
  }

  get pid(): number {
    return this.first.pid;
  }

  get otherPids(): readonly number[] {
    return this.others.map(({ pid }) => pid);
  }

  get port(): number {
    return this.first.port;
  }

  get otherPorts(): readonly number[] {
    return this.others.map(({ port }) => port);
  }

  get ports(): readonly number[] {
    return [this.port, ...this.otherPorts];
  }

  async stop(): Promise<void> {
    await Promise.all([this.first, ...this.others].map((node) => node.stop()));
  }
}
