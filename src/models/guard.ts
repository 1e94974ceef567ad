import type { EmbeddingModelV4, LanguageModelV4 } from "@ai-sdk/provider";
import type { Clock } from "../base/clock.ts";
import { callFor } from "./calling-workspace.ts";
import { wholeWithDeadline, withDeadline } from "./deadline.ts";
import { askOnce } from "./embed/request.ts";

export interface GuardParts {
  /** `<provider>/<model>` */
  readonly id: string;
  readonly workspaceId: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Checks the policy. Called before each request. @throws Problem 403 `model_forbidden` */
  check(): void;
}

/** A model that checks the policy at each call, and fails if its provider is silent for too long. */
export function guardLanguageModel(
  model: LanguageModelV4,
  { id, workspaceId, timeoutMs, clock, check }: GuardParts,
): LanguageModelV4 {
  const slash = id.indexOf("/");
  return {
    specificationVersion: "v4",
    provider: id.slice(0, slash),
    modelId: id.slice(slash + 1),
    get supportedUrls() {
      return model.supportedUrls;
    },
    async doGenerate(options) {
      check();
      const start = (inner: typeof options) => callFor(workspaceId, () => model.doGenerate(inner));
      return wholeWithDeadline(start, options, timeoutMs, clock);
    },
    async doStream(options) {
      check();
      const start = (inner: typeof options) => callFor(workspaceId, () => model.doStream(inner));
      return withDeadline(start, options, timeoutMs, clock);
    },
  };
}

/** Like `guardLanguageModel`, for a model that makes vectors. */
export function guardEmbeddingModel(
  model: EmbeddingModelV4,
  { id, workspaceId, timeoutMs, clock, check }: GuardParts,
): EmbeddingModelV4 {
  const slash = id.indexOf("/");
  return {
    specificationVersion: "v4",
    provider: id.slice(0, slash),
    modelId: id.slice(slash + 1),
    get maxEmbeddingsPerCall() {
      return model.maxEmbeddingsPerCall;
    },
    get supportsParallelCalls() {
      return model.supportsParallelCalls;
    },
    async doEmbed(options) {
      check();
      return callFor(workspaceId, () => askOnce(model, options, timeoutMs, clock));
    },
  };
}
