/**
 * Join words.
 * @typedef {Object} Args
 * @property {string[]} words - The words
 * @property {'comma'|'space'} [by='comma'] - What stands between them
 * @param {Args} args
 */
exports.run = async function ({ words, by = "comma" }) {
  return words.join(by === "comma" ? "," : " ");
};
