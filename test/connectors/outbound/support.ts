import { ConnectorError } from "../../../src/connectors/source.ts";

/** The fault and message that it failed with, or what happened instead. */
export async function faultOf(promise: Promise<unknown>): Promise<readonly [fault: string, message: string]> {
  try {
    const value = await promise;
    return ["none", value instanceof Response ? `status ${value.status}` : String(value)];
  } catch (error) {
    if (error instanceof ConnectorError) return [error.fault, error.message];
    return ["no ConnectorError", String(error)];
  }
}
