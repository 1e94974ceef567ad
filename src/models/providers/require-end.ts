import {
  InvalidResponseDataError,
  type LanguageModelV4,
  type LanguageModelV4StreamPart,
} from "@ai-sdk/provider";

/**
 * A model whose streamed answers fail if they end without a reason. Some packages report a stream that was cut off
 * with their default reason, as if the model had ended it, so half an answer would pass for a whole one. Newer
 * packages report the failure in the same way as this function.
 */
export function requireEnd(model: LanguageModelV4): LanguageModelV4 {
  return {
    specificationVersion: model.specificationVersion,
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (options) => model.doGenerate(options),
    async doStream(options) {
      const result = await model.doStream(options);
      return { ...result, stream: result.stream.pipeThrough(new TransformStream({ transform })) };
    },
  };
}

function transform(
  part: LanguageModelV4StreamPart,
  controller: TransformStreamDefaultController<LanguageModelV4StreamPart>,
): void {
  const isCut =
    part.type === "finish" && part.finishReason.unified === "other" && part.finishReason.raw === undefined;
  const message = "The stream ended before the answer was complete.";
  controller.enqueue(
    isCut ? { type: "error", error: new InvalidResponseDataError({ data: undefined, message }) } : part,
  );
}
