import { COMPRESSED } from "../../base/uncompressed.ts";
import { ConnectorError, type ConnectorFault } from "../source.ts";

type ErrorMeaning = readonly [fault: ConnectorFault, words: string];

/**
 * The meanings of error codes of Bun, Node and OpenSSL's certificate check. Each one completes a sentence about the
 * server.
 */
const MEANINGS: ReadonlyMap<string, ErrorMeaning> = new Map([
  ...entries("unreachable", "cannot be reached: the connection was refused", [
    "ECONNREFUSED",
    "ConnectionRefused",
  ]),
  ...entries("unreachable", "cannot be reached: its name cannot be resolved", [
    "ENOTFOUND",
    "ENODATA",
    "EAI_AGAIN",
    "EAI_NONAME",
    "EAI_NODATA",
    "EAI_FAIL",
  ]),
  ...entries("unreachable", "cannot be reached: there is no route to its address", [
    "EHOSTUNREACH",
    "ENETUNREACH",
    "EADDRNOTAVAIL",
    "EAFNOSUPPORT",
    "EINVAL",
    "FailedToOpenSocket",
  ]),
  ...entries("unreachable", "closed the connection", [
    "ECONNRESET",
    "ConnectionClosed",
    "ECONNABORTED",
    "EPIPE",
  ]),
  ...entries("unreachable", "does not speak TLS, which https requires", [
    "EPROTO",
    "ERR_SSL_WRONG_VERSION_NUMBER",
  ]),
  ...entries("timeout", "did not answer in time", ["ETIMEDOUT", "Timeout"]),
  ...entries("unreachable", "has a certificate for another name", ["ERR_TLS_CERT_ALTNAME_INVALID"]),
  ...entries("unreachable", "has a certificate that has expired", ["CERT_HAS_EXPIRED"]),
  ...entries("unreachable", "has a certificate that is not valid yet", ["CERT_NOT_YET_VALID"]),
  ...entries("unreachable", "has a certificate that is not signed by a trusted authority", [
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "UNABLE_TO_GET_ISSUER_CERT",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  ]),
  ...entries("too_large", "sent headers that are too large", [
    "ResponseHeadersTooLarge",
    "HPE_HEADER_OVERFLOW",
  ]),
  ...entries("invalid_answer", "did not answer in HTTP", ["Malformed_HTTP_Response", "InvalidHTTPResponse"]),
  ...entries("invalid_answer", "compressed its answer, although the request asked it not to", [COMPRESSED]),
]);

/** How many nested causes are followed. */
const CAUSES = 5;

/**
 * Describes a failed request in words that may be shown. It never contains the error's own message: Bun's messages
 * repeat the URL with its query.
 *
 * @param what the subject of the sentence: "The connector github"
 */
export function asConnectorError(error: unknown, what: string): ConnectorError {
  let code: string | undefined;
  let isCoded = false;
  for (let each = error, depth = 0; each instanceof Error && depth < CAUSES; each = each.cause, depth++) {
    if (each instanceof ConnectorError) return each;
    if (each.name === "AbortError")
      return new ConnectorError("cancelled", `${what} did not answer before the request was cancelled.`);
    if (each.name === "TimeoutError") return new ConnectorError("timeout", `${what} did not answer in time.`);
    code ??= codeOf(each);
    isCoded ||= "code" in each;
  }
  const meaning = code === undefined ? undefined : (MEANINGS.get(code) ?? certificate(code));
  if (meaning) return new ConnectorError(meaning[0], `${what} ${meaning[1]}.`);
  const words = code === undefined ? `${what} cannot be reached.` : `${what} cannot be reached (${code}).`;
  // A coded error comes from the network and may contain the URL, so it is dropped. Any other error is kept as the
  // cause, to be investigated.
  return new ConnectorError("unreachable", words, isCoded ? {} : { cause: error });
}

/** OpenSSL has about thirty more codes. */
function certificate(code: string): ErrorMeaning | undefined {
  return /CERT|CRL|ISSUER|SELF_SIGNED|HOSTNAME/.test(code)
    ? ["unreachable", `has a certificate that is not accepted (${code})`]
    : undefined;
}

/** Codes are single words. Any other value could contain anything. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^\w{1,60}$/.test(code) ? code : undefined;
}

function entries(fault: ConnectorFault, words: string, codes: readonly string[]): [string, ErrorMeaning][] {
  return codes.map((code) => [code, [fault, words]]);
}
