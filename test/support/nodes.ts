/** Gateways that share one store, in this process. */
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { startGateway, type TestGateway, type TestGatewayOptions } from "./gateway.ts";
import { createDatabase, type TestDatabase } from "./postgres/database.ts";
import { until } from "./until.ts";

export interface TestNodes {
  readonly database: TestDatabase;
  /** They have the same admin secret. */
  readonly nodes: readonly TestGateway[];
  /** Starts another node. */
  add(options?: TestGatewayOptions): Promise<TestGateway>;
  /** Stops all nodes, and removes the store. */
  stop(): Promise<void>;
}

/** Starts `count` nodes. `options` hold for all of them. */
export async function startNodes(count: number, options: TestGatewayOptions = {}): Promise<TestNodes> {
  const database = await createDatabase();
  const admin = createSecret(systemRandom);
  const nodes: TestGateway[] = [];
  async function add(own: TestGatewayOptions = {}): Promise<TestGateway> {
    const node = await startGateway({ ...options, ...own, database, admin });
    nodes.push(node);
    return node;
  }
  for (let started = 0; started < count; started++) await add();
  await until(async () => (await database.query("SELECT 1 FROM nodes")).length === count);
  return {
    ...{ database, nodes, add },
    async stop() {
      for (const node of nodes) await node.stop();
      await database.drop();
    },
  };
}
