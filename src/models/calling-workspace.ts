import { AsyncLocalStorage } from "node:async_hooks";

const storage = new AsyncLocalStorage<number>();

/**
 * Calls a provider's SDK on behalf of a workspace. The SDK passes nothing about the caller to `fetch`, and all workspaces
 * share its models.
 */
export function callFor<Result>(workspaceId: number, call: () => Result): Result {
  return storage.run(workspaceId, call);
}

/** The workspace for which a provider's SDK is called. 0, which is not a workspace, outside of `callFor`. */
export function callingWorkspace(): number {
  return storage.getStore() ?? 0;
}
