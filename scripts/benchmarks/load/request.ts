export interface RequestParts {
  readonly token?: string;
  readonly body?: object;
  /** Default: anything. */
  readonly accept?: string;
  /** Complete lines, such as `Name: value`. */
  readonly headers?: readonly string[];
}

/**
 * A request as sent over the wire. The bare servers get the same headers, including the token, because they have to
 * parse them too.
 */
export function requestText(
  method: string,
  path: string,
  { token, body, accept = "*/*", headers = [] }: RequestParts = {},
): string {
  const payload = body === undefined ? "" : JSON.stringify(body);
  const head = [
    `${method} ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    `Accept: ${accept}`,
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...headers,
    ...(body === undefined
      ? []
      : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(payload)}`]),
  ];
  return `${head.join("\r\n")}\r\n\r\n${payload}`;
}
