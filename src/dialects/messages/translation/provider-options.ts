import type { SharedV4ProviderOptions } from "@ai-sdk/provider";
import { shortUserId } from "../../translation/short-user-id.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { unsupported } from "../../translation/unsupported.ts";
import type { Thinking } from "./read-thinking.ts";

/** Settings that only some kinds of providers receive. */
interface ForProvider {
  readonly userId: string | undefined;
  /** Whether the model may call several tools at once. */
  readonly isParallel: boolean;
  readonly thinking: Thinking;
}

/**
 * Options beyond those that all providers share. `metadata.user_id` is left out for kinds of providers that have no
 * field for it: it does not affect answers.
 * @throws Problem 400 `unsupported_parameter`
 */
export function providerOptions(
  { kind, provider }: TranslationTarget,
  { userId, isParallel, thinking }: ForProvider,
): SharedV4ProviderOptions | undefined {
  const user = userId === undefined ? {} : { user: shortUserId(userId) };
  switch (kind as string) {
    case "openai":
    case "azure":
      return {
        openai: {
          // Nothing is stored there, so nothing can be referred to: all workspaces share the provider's account.
          store: false,
          ...user,
          ...(isParallel ? {} : { parallelToolCalls: false }),
          ...(thinking.isOn === true && !thinking.isOmitted ? {} : { reasoningSummary: null }),
        },
      };
    case "openai-compatible":
      return {
        openaiCompatible: user,
        ...(isParallel ? {} : { [provider]: { parallel_tool_calls: false } }),
      };
    case "google":
    case "vertex":
      if (!isParallel) throw parallelRefusal();
      return thinking.isOn === true && !thinking.isOmitted
        ? { google: { thinkingConfig: { includeThoughts: true } } }
        : undefined;
    default:
      if (!isParallel) throw parallelRefusal();
      return undefined;
  }
}

function parallelRefusal() {
  return unsupported(
    "tool_choice.disable_parallel_tool_use",
    "cannot be translated for this model's provider.",
  );
}
