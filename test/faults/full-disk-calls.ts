import { afterEach } from "bun:test";
import type { Answered } from "../support/gateway.ts";
import { ledger } from "../tasks/support.ts";
import { type FullDiskStage, type LateEntry, startFullDiskStage } from "./full-disk-support.ts";

export let stage: FullDiskStage;

export const call = (method: string, path: string, body?: object): Promise<Answered> =>
  stage.gateway.call(method, path, body === undefined ? {} : { body });

export const endIsRefused = () =>
  stage.lines.some(({ message }) => message === "a task's end cannot be written yet");

export const entries = async () => (await ledger(stage.gateway)) as LateEntry[];

export const statusOf = async (id: string) => (await call("GET", `/v1/tasks/${id}`)).body.status;

export async function startStage(options?: Parameters<typeof startFullDiskStage>[0]): Promise<void> {
  stage = await startFullDiskStage(options);
}

/** Stops the stage after each test of a file. */
export function useFullDisk(): void {
  afterEach(() => stage.stop());
}
