import type { Api, ProblemBody } from "../../http/api.ts";
import { ApiProblem, offline } from "./problem.ts";

export type RouteName = keyof Api & string;

/** The names of `:parameters` in a path. */
type ParametersOf<Path> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParametersOf<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

type QueryOf<Name extends RouteName> = Api[Name] extends { query: infer Query } ? Query : never;
type BodyOf<Name extends RouteName> = Api[Name] extends { body: infer Body } ? Body : never;
export type AnswerOf<Name extends RouteName> = Api[Name]["answer"];

/** The parameters and body that a call to the route needs. */
export type CallOptions<Name extends RouteName> = ([ParametersOf<Name>] extends [never]
  ? { readonly params?: undefined }
  : { readonly params: Readonly<Record<ParametersOf<Name>, string>> }) &
  ([QueryOf<Name>] extends [never] ? { readonly query?: undefined } : { readonly query?: QueryOf<Name> }) &
  ([BodyOf<Name>] extends [never] ? { readonly body?: undefined } : { readonly body: BodyOf<Name> }) & {
    readonly signal?: AbortSignal;
    readonly headers?: Readonly<Record<string, string>>;
    /** Called with the headers of a successful answer. */
    readonly answered?: (headers: Headers) => void;
  };

type ClientListener = () => void;
const signedOut = new Set<ClientListener>();

/** Calls `listener` when an answer shows that the session has ended. @returns a function that removes the listener */
export function onSignedOut(listener: ClientListener): () => void {
  signedOut.add(listener);
  return () => void signedOut.delete(listener);
}

/**
 * Calls a REST route. The browser adds the session's cookie and marks the request as same-origin.
 * @throws ApiProblem if the call is refused or fails, or if there is no answer; the signal's reason if it aborts
 */
export async function call<Name extends RouteName>(
  name: Name,
  options: CallOptions<Name>,
): Promise<AnswerOf<Name>> {
  const { params, query, body, signal, headers, answered } = options as LooseOptions;
  const [method = "GET", path = ""] = name.split(" ");
  const response = await fetchAnswer(method, addressOf(path, params, query), { body, signal, headers });
  answered?.(response.headers);
  return (response.status === 204 ? undefined : await response.json()) as AnswerOf<Name>;
}

interface LooseOptions {
  readonly params?: Readonly<Record<string, string>> | undefined;
  readonly query?: object | undefined;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly answered?: ((headers: Headers) => void) | undefined;
}

/** A path with its parameters and query filled in. Undefined and empty query values are left out. */
export function addressOf(
  path: string,
  params: Readonly<Record<string, string>> = {},
  query: object = {},
): string {
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") search.set(key, String(value));
  }
  return search.size === 0 ? filled : `${filled}?${search}`;
}

/** The raw answer of a call, for content that is long or not JSON. @throws as `call` does */
export async function fetchAnswer(
  method: string,
  address: string,
  { body, signal, headers }: Pick<LooseOptions, "body" | "signal" | "headers"> = {},
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, {
      method,
      cache: "no-store",
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw offline();
  }
  if (response.ok) return response;
  throw await problemOf(response);
}

/** The problem that an answer carries, or one made from its status if a proxy answered. A 401 ends the session. */
export async function problemOf(response: Response): Promise<ApiProblem> {
  const { status } = response;
  if (status === 401) for (const listener of signedOut) listener();
  const isProblem = response.headers.get("content-type")?.includes("problem+json") === true;
  if (!isProblem) {
    return new ApiProblem(status, { code: `http_${status}`, detail: `The server answered ${status}.` });
  }
  return new ApiProblem(status, (await response.json()) as ProblemBody);
}
