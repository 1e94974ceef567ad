/**
 * What a call may do has changed while it waited for its budget. Thrown out of the transaction of its intent, which
 * is undone. The call is then decided again.
 */
export class RightsChanged extends Error {
  override readonly name = "RightsChanged";
}
