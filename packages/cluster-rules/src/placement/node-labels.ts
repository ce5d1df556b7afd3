/** Labels of nodes that placement goes by. */

/** On nodes whose guests can have a TPM. Ours: upstream's launcher brings its emulator along. */
export const TPM_LABEL = 'coracle.dev/tpm';
