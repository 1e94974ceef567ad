import type { LanguageModelV4CallOptions, LanguageModelV4Usage } from "@ai-sdk/provider";
import { CLIENT_CONVERSATION } from "../agents/extractive/model.ts";
import { Problem } from "../base/errors.ts";
import { takeTurn } from "../base/inflow.ts";
import type { ValueCheck } from "../connectors/arguments/check.ts";
import { AnswerShare } from "../models/answer-memory.ts";
import type { ClientModel, NativeModel } from "../models/gateway.ts";
import type { ClientRequest } from "./client-request.ts";
import type { DialectRequest } from "./dialect.ts";
import type { DialectAnswer } from "./dialect-answer.ts";
import { fittingPrompt } from "./translation/fitting-prompt.ts";
import { limitedOptions } from "./translation/refusals.ts";
import { strictCheck, strictWriter, withStrictness } from "./translation/strict-answer.ts";
import { TranslatedStream, WrittenAnswer, wholeBody } from "./translation/translated-answer.ts";
import type { AnswerHead, Translation, TranslationTarget } from "./translation/translation.ts";
import { unsupported } from "./translation/unsupported.ts";
import { clientUrls } from "./translation/urls.ts";
import { embedAll, VectorAnswer, vectorUsage } from "./translation/vectors.ts";

/** The context in which a request is sent. */
export interface SentRequest {
  /** The Gatehouse instances that the request has passed through. */
  readonly via: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The workspace in whose turns the answer is read. */
  readonly workspaceId: number;
  /** Reads the policy again. MUST be awaited before every request to the provider except the first. */
  renew(): Promise<unknown>;
  /** If the call takes several requests, called before `send` resolves, with what has been used. */
  used(usage: LanguageModelV4Usage): void;
}

/** A model that a client's request can be sent to, and that answers in the client's dialect. */
export interface CallableModel {
  /** `<provider>/<model>` */
  readonly id: string;
  /**
   * Sends the request. MUST be called only once.
   * @throws Problem 403 `model_forbidden` before anything is sent; a TimeoutError; the provider's errors
   */
  send(sent: SentRequest): Promise<DialectAnswer>;
  /** Masks the provider's address and credentials in text from the provider. */
  readonly hide: (text: string) => string;
}

type NewHead = () => Omit<AnswerHead, "model">;

interface RouteRequest {
  readonly client: ClientRequest;
  readonly request: DialectRequest;
  readonly head: NewHead;
  /** The workspace in whose turns the request is translated. */
  readonly workspaceId: number;
}

/** The models of a route, in order, without those for which the request cannot be translated. */
export class CallableModels {
  readonly #models: Iterator<ClientModel>;
  readonly #client: ClientRequest;
  readonly #request: DialectRequest;
  readonly #head: NewHead;
  readonly #workspaceId: number;
  #refusal: Problem | undefined;

  constructor(models: readonly ClientModel[], { client, request, head, workspaceId }: RouteRequest) {
    this.#models = models.values();
    this.#workspaceId = workspaceId;
    this.#client = client;
    this.#request = request;
    this.#head = head;
  }

  /**
   * The first model.
   * @throws Problem 400 `unsupported_parameter` naming what cannot be translated, if no model can take the request
   */
  async first(): Promise<CallableModel> {
    const model = await this.next();
    if (model === null) throw this.#refusal ?? new Error("a route has no models");
    return model;
  }

  /** The next model, or null if there is none. The request is translated for a model only when its turn comes. */
  async next(): Promise<CallableModel | null> {
    for (let next = this.#models.next(); !next.done; next = this.#models.next()) {
      // Lets other calls go first: each translation of a large request takes tens of milliseconds.
      const turn = takeTurn(this.#workspaceId, { bytes: this.#request.size.bytes });
      if (turn) await turn;
      try {
        return await callableModel(next.value, this.#client, this.#request, this.#head);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        this.#refusal ??= error;
      }
    }
    return null;
  }
}

async function callableModel(
  model: ClientModel,
  client: ClientRequest,
  request: DialectRequest,
  head: NewHead,
): Promise<CallableModel> {
  if (model.native) return new PassingModel(model, model.native, client, request);
  const { translation, vectors } = client.api;
  if (translation) {
    const language = model.language();
    const { kind, id } = model;
    const slash = id.indexOf("/");
    const provider = id.slice(0, slash);
    const target = { provider, kind, supportedUrls: clientUrls(await language.supportedUrls) };
    const value = request.valueFor?.(id) ?? client.value;
    const read = translation.options(value, target);
    const fitting = { ...read, prompt: fittingPrompt(read.prompt, target) };
    const limited = limitedOptions(fitting, { kind, model: id.slice(slash + 1) }, translation.paths);
    const strict = translation.strictFormat?.(value);
    const check = strictCheck(target, strict);
    const asked = translation.strictFormat ? withStrictness(limited, target, strict) : limited;
    const options = kind === "builtin" ? { ...asked, providerOptions: CLIENT_CONVERSATION } : asked;
    const parts = { options, translation, target, value, check, request, head };
    return new TranslatedModel(model, language, parts);
  }
  const embedding = vectors && model.embedding();
  if (!vectors || !embedding)
    throw unsupported("model", "belongs to a provider that does not speak this API.");
  const { values, dimensions } = vectors.options(client.value);
  if (dimensions !== undefined && model.kind === "bedrock") {
    throw unsupported("dimensions", "cannot be sent to this model's provider.");
  }
  return {
    id: model.id,
    hide: model.hide,
    async send({ via, signal, workspaceId, renew, used }) {
      const share = new AnswerShare();
      try {
        const made = await embedAll(embedding, {
          ...{ values, dimensions, headers: via, signal, share, renew },
          used: (tokens) => used(vectorUsage(tokens)),
        });
        const { tokens } = made;
        const parts = { tokens, hide: model.hide, workspaceId, share };
        return new VectorAnswer(vectors.answer(client.value, made, model.id), parts);
      } catch (error) {
        share.leave();
        throw share.failure ?? error;
      }
    },
  };
}

/** A model whose provider speaks the client's dialect. */
class PassingModel implements CallableModel {
  readonly id: string;
  readonly hide: (text: string) => string;
  readonly #native: NativeModel;
  readonly #client: ClientRequest;
  readonly #request: DialectRequest;

  constructor(model: ClientModel, native: NativeModel, client: ClientRequest, request: DialectRequest) {
    this.id = model.id;
    this.hide = model.hide;
    this.#native = native;
    this.#client = client;
    this.#request = request;
  }

  send({ via, signal, workspaceId }: SentRequest): Promise<DialectAnswer> {
    const { api, query, headers } = this.#client;
    return this.#native.send({
      suffix: query,
      body: this.#request.bytesFor(this.#native.name, this.id),
      headers: { ...api.passedHeaders(headers), ...via },
      ...{ signal, workspaceId },
    });
  }
}

interface TranslatedParts {
  readonly options: LanguageModelV4CallOptions;
  readonly translation: Translation;
  readonly target: TranslationTarget;
  /** The translated request. */
  readonly value: unknown;
  /** Checks the text of the answer, if the client demands its format strictly. */
  readonly check: ValueCheck | undefined;
  readonly request: DialectRequest;
  readonly head: NewHead;
}

/** A model whose provider speaks another dialect. */
class TranslatedModel implements CallableModel {
  readonly id: string;
  readonly hide: (text: string) => string;
  readonly #language: ReturnType<ClientModel["language"]>;
  readonly #parts: TranslatedParts;

  constructor(model: ClientModel, language: ReturnType<ClientModel["language"]>, parts: TranslatedParts) {
    this.id = model.id;
    this.hide = model.hide;
    this.#language = language;
    this.#parts = parts;
  }

  async send({ via, signal, workspaceId }: SentRequest): Promise<DialectAnswer> {
    const { options, request, value, check, translation, target, head } = this.#parts;
    const sent = { ...options, headers: via, abortSignal: signal };
    const written = translation.writer(value, target, { ...head(), model: this.id });
    const writer = check ? strictWriter(written, check) : written;
    const { paths } = translation;
    const parts = { writer, workspaceId, paths, hide: this.hide };
    if (request.isStream) return new TranslatedStream((await this.#language.doStream(sent)).stream, parts);
    const result = await this.#language.doGenerate(sent);
    return new WrittenAnswer(result.usage, this.hide, () => wholeBody(result, parts));
  }
}
