// Envelopes and failures of the provider contract, section 3.

/** A refusal that becomes a `fail` (4xx) or `error` (5xx) envelope. */
export class HttpFailure extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {{field?: string, headers?: Record<string,string>}} [extra]
   */
  constructor(status, message, extra = {}) {
    super(message);
    this.status = status;
    this.field = extra.field ?? "reason";
    this.headers = extra.headers ?? {};
  }
}

/** @param {any} data @returns {string} */
export function success(data) {
  return JSON.stringify({ status: "success", data });
}

/**
 * The body of a failure, in the form that section 3 and its switch ask for.
 * @param {number} status
 * @param {string} message
 * @param {string} field
 * @param {import("./types.mjs").Switches["failData"]} form
 * @returns {{body: string, type: string}}
 */
export function failure(status, message, field, form) {
  if (form === "html") {
    return { body: `<html><body><h1>${status}</h1></body></html>\n`, type: "text/html" };
  }
  if (status >= 500) {
    return { body: JSON.stringify({ status: "error", message, code: status }), type: "application/json" };
  }
  const data = form === "null" ? null : form === "string" ? message : { [field]: message };
  return { body: JSON.stringify({ status: "fail", data }), type: "application/json" };
}

/**
 * Acknowledgement payload; strict clients need an object.
 * @param {import("./types.mjs").Switches["ack"]} form
 * @param {string} id
 */
export function ack(form, id) {
  return form === "empty" ? {} : form === "id" ? { id } : { ok: true };
}
