/** That there is nothing to show, and where it was looked for: of one namespace it says little about the others. */
export const nothingText = (text: string, namespace: string | undefined): string =>
  namespace === undefined ? text : `${text} in namespace ${namespace} (all namespaces: -A)`;
