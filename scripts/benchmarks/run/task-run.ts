import type { ExchangesJob } from "../load/jobs.ts";
import { requestText } from "../load/request.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { chunk, chunks, SHORT_CHUNKS } from "../servers/script.ts";
import { TIER, taskRequest } from "../setup.ts";

/** The callers whose runs give the rate. */
export const CALLERS = 32;
/** Runs that start together. */
export const TOGETHER = 60;

/** A task with a short answer, streamed to its caller, and the checks of its stream. */
export function taskRun({ admin }: Gatehouse): Pick<ExchangesJob, "request" | "expect"> {
  return {
    request: requestText("POST", "/v1/tasks?stream=true", { token: admin, body: taskRequest(TIER.short) }),
    expect: {
      status: 200,
      first: chunk(0),
      texts: [`"status":"succeeded","output":"${chunks(SHORT_CHUNKS).join("")}"`],
    },
  };
}
