import type { Answered, CallOptions, TestGateway } from "../support/gateway.ts";

/** A signed-in browser and the calls that its pages make. */
export interface Browser {
  /** The session's id. */
  readonly id: string;
  /** `name=value`, as the server set it. */
  readonly cookie: string;
  /** A call from the server's own page; `headers` replace those that a browser sends. */
  ask(method: string, path: string, options?: Pick<CallOptions, "body" | "headers">): Promise<Answered>;
}

/** `name=value` from the `Set-Cookie` header. */
export function cookieOf({ headers }: Answered): string {
  return /^[^;]+/.exec(headers.get("set-cookie") ?? "")?.[0] ?? "";
}

export const OWN_PAGE = { "sec-fetch-site": "same-origin" };

/** Signs a browser in with a token (by default the admin's) or with the secret of a link. */
export async function signIn(gateway: TestGateway, secret = gateway.admin): Promise<Browser> {
  const answer = await gateway.call("POST", "/v1/session", { token: secret, headers: OWN_PAGE });
  if (answer.status !== 201)
    throw new Error(`not signed in: ${answer.status} ${JSON.stringify(answer.body)}`);
  const cookie = cookieOf(answer);
  return {
    id: answer.body.session.id,
    cookie,
    ask: (method, path, { body, headers = OWN_PAGE } = {}) =>
      gateway.call(method, path, { token: null, body, headers: { ...headers, cookie } }),
  };
}

/** The secret of a new one-time link, requested as `gatehouse console` does. */
export async function linkFor({ call, gateway }: TestGateway, workspace = "default"): Promise<string> {
  const headers = { "gatehouse-operator": "ada", "gatehouse-workspace": workspace };
  const made = await call("POST", "/operator/console-links", { token: gateway.operatorSecret, headers });
  if (made.status !== 201) throw new Error(`no link: ${made.status} ${JSON.stringify(made.body)}`);
  return /#link=(.+)$/.exec(made.body.url)?.[1] ?? "";
}
