/**
 * What a call may do has changed while it waited for its budget. Thrown out of the transaction of its intent, of which nothing
 * lasts; the call is then decided on again.
 */
export class RightsChanged extends Error {
  override readonly name = "RightsChanged";
}
