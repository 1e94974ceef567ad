import { AsyncLocalStorage } from "node:async_hooks";

const storage = new AsyncLocalStorage<number>();

/**
 * Runs a call of a provider's SDK for a workspace. The SDK hands nothing of the caller on to `fetch`, and its models are
 * shared by all workspaces.
 */
export function callFor<Result>(workspaceId: number, call: () => Result): Result {
  return storage.run(workspaceId, call);
}

/** The workspace for which a provider's SDK is called. 0, which is not a workspace, outside of `callFor`. */
export function callingWorkspace(): number {
  return storage.getStore() ?? 0;
}
