import { noOtherNodes } from "./claimed-work.ts";
import { localClaims } from "./claims.ts";
import { type OpenClaims, type OpenClaimsParts, openSharedClaims } from "./shared/open.ts";

const LOCAL: OpenClaims = { claims: localClaims, otherNodes: noOtherNodes, add() {} };

export function openClaims(parts: OpenClaimsParts): OpenClaims {
  return parts.nodes.isShared ? openSharedClaims(parts) : LOCAL;
}
