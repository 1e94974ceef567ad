import Type from "typebox";
import { validator } from "../../../src/base/schema.ts";
import { OPERATOR_USER_HEADER, OPERATOR_WORKSPACE_HEADER } from "../../../src/http/caller/credential.ts";
import { readRuntime } from "../../../src/store/runtime.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { AGENT_REQUEST } from "../setup.ts";

const issued = validator(Type.Object({ secret: Type.String() }));

/**
 * Creates workspaces, each with the benchmarks' agent.
 * @returns the secret of an admin token of each
 */
export async function createWorkspaces(gatehouse: Gatehouse, count: number): Promise<string[]> {
  const secrets: string[] = [];
  for (let index = 0; index < count; index++) {
    const name = `bench-${index}`;
    await callAsOperator(gatehouse, "default", "/operator/workspaces", { name });
    await callAsOperator(gatehouse, name, "/v1/agents", AGENT_REQUEST);
    const token = { name: "benchmarks", scopes: ["admin"] };
    secrets.push(issued.parse(await callAsOperator(gatehouse, name, "/v1/tokens", token)).secret);
  }
  return secrets;
}

/** A POST as the command line makes it, for what only the operator of the machine may do. */
async function callAsOperator(
  { folder, port }: Gatehouse,
  workspace: string,
  path: string,
  body: object,
): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${readRuntime(folder)?.secret}`,
      [OPERATOR_USER_HEADER]: "benchmarks",
      [OPERATOR_WORKSPACE_HEADER]: workspace,
      "content-type": "application/json",
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== 201) throw new Error(`POST ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}
