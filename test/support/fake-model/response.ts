import type { Behaviour, UsageScript } from "./behaviour.ts";
import {
  argumentsOf,
  COMPLETION_ID,
  CREATED,
  callId,
  type Frames,
  finishReason,
  framesOf,
  totalled,
} from "./frames.ts";
import { type ChatRequestBody, lastUserText } from "./request.ts";

const EVENT_STREAM = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };

/** An error in OpenAI's format. */
export function errorResponse(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
  return Response.json({ error: { message, type, param: null, code: null } }, { status, headers });
}

/** Plays `behaviour`. Calls `ended` once everything to be sent has been handed over. */
export async function answer(
  body: ChatRequestBody,
  behaviour: Behaviour,
  signal: AbortSignal,
  ended: () => void,
): Promise<Response> {
  if (behaviour.hang) await hangUp(signal);
  if (behaviour.firstDelayMs !== undefined) await pause(behaviour.firstDelayMs, signal);
  if (behaviour.status !== undefined && behaviour.status !== 200) {
    ended();
    return errorResponse(behaviour.status, `The script answers ${behaviour.status}.`, behaviour.headers);
  }
  const usage = usageOf(body, behaviour);
  if (body.stream !== true && behaviour.rawBytes === undefined) {
    return answerWhole(body.model, behaviour, usage, signal, ended);
  }
  const headers = { ...EVENT_STREAM, ...behaviour.headers };
  const frames = framesOf(behaviour, body.model, usage);
  const withUsage = body.stream_options?.include_usage === true;
  if (isPlain(behaviour)) return new Response(atOnce(frames, withUsage, ended), { headers });
  return new Response(oneByOne(play(behaviour, frames, withUsage, signal), ended), { headers });
}

/** The answer to a call that did not ask for a stream. */
async function answerWhole(
  model: string,
  behaviour: Behaviour,
  usage: UsageScript | null,
  signal: AbortSignal,
  ended: () => void,
): Promise<Response> {
  if (behaviour.hangAfter !== undefined) await hangUp(signal);
  if (behaviour.gate) await Promise.race([behaviour.gate, hangUp(signal)]);
  if (behaviour.cutAfter !== undefined) {
    return new Response(oneByOne(cut(), ended), { headers: { "content-type": "application/json" } });
  }
  ended();
  const message = {
    role: "assistant",
    content: behaviour.chunks?.join("") ?? null,
    tool_calls: behaviour.toolCalls?.map((call, index) => ({
      id: callId(index),
      type: "function",
      function: { name: call.name, arguments: argumentsOf(call.arguments) },
    })),
  };
  const choice = { index: 0, message, finish_reason: behaviour.noFinish ? null : finishReason(behaviour) };
  const completion = {
    id: COMPLETION_ID,
    object: "chat.completion",
    created: CREATED,
    model,
    choices: [choice],
    usage: usage === null ? undefined : totalled(usage),
  };
  return Response.json(completion, { headers: { ...behaviour.headers } });
}

function usageOf(body: ChatRequestBody, behaviour: Behaviour): UsageScript | null {
  if (behaviour.usage !== undefined) return behaviour.usage;
  return {
    prompt_tokens: lastUserText(body).split(/\s+/).filter(Boolean).length,
    completion_tokens: (behaviour.chunks?.length ?? 0) + (behaviour.toolCalls?.length ?? 0),
  };
}

/** Whether there is nothing to wait for and nothing to break, so the whole stream can be sent in one write. */
function isPlain(behaviour: Behaviour): boolean {
  const { delayMs, gate, hangAfter, cutAfter, noFinish, rawBytes } = behaviour;
  return !(delayMs || gate || noFinish || rawBytes) && hangAfter === undefined && cutAfter === undefined;
}

function atOnce(frames: Frames, withUsage: boolean, ended: () => void): ReadableStream {
  return new ReadableStream({
    // In `pull`, because a stream that is closed at its start would be sent with a content length.
    pull(controller) {
      controller.enqueue(withUsage ? frames.wholeWithUsage : frames.whole);
      controller.close();
      ended();
    },
  });
}

/** A stream of what `parts` yields. If `parts` throws, the connection breaks. */
function oneByOne(parts: AsyncGenerator<Uint8Array>, ended: () => void): ReadableStream {
  return new ReadableStream({
    async pull(controller) {
      const next = await parts.next();
      if (next.done !== true) return controller.enqueue(next.value);
      ended();
      controller.close();
    },
  });
}

async function* play(
  behaviour: Behaviour,
  frames: Frames,
  withUsage: boolean,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (behaviour.rawBytes) {
    for (const [index, bytes] of behaviour.rawBytes.entries()) {
      if (index === 1 && behaviour.gate) await Promise.race([behaviour.gate, hangUp(signal)]);
      yield bytes;
      await pause(behaviour.delayMs ?? 5, signal);
    }
    return;
  }
  yield frames.role;
  for (const [index, frame] of frames.content.entries()) {
    await stopAt(index, behaviour, signal);
    if (index > 0 && behaviour.delayMs) await pause(behaviour.delayMs, signal);
    yield frame;
  }
  await stopAt(frames.content.length, behaviour, signal);
  if (behaviour.gate) await Promise.race([behaviour.gate, hangUp(signal)]);
  if (behaviour.noFinish) return;
  yield frames.finish;
  if (withUsage && frames.usage) yield frames.usage;
  yield frames.done;
}

/** Cuts the stream or hangs once this many chunks have been sent. */
async function stopAt(sent: number, behaviour: Behaviour, signal: AbortSignal): Promise<void> {
  if (behaviour.hangAfter === sent) await hangUp(signal);
  if (behaviour.cutAfter === sent) {
    if (behaviour.gate) await Promise.race([behaviour.gate, hangUp(signal)]);
    await pause(5, signal); // let what was sent leave first
    throw new Error("The script cuts here.");
  }
}

async function* cut(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array([0x7b]);
  await Bun.sleep(5);
  throw new Error("The script cuts here.");
}

/** Waits for the caller to hang up and then rejects, because nothing more can be sent. */
function hangUp(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Rejects if the caller hangs up in the meantime. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
