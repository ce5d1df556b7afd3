/** The name of a target that the user did not name (kubevirt pkg/virt-api, clone-create-mutator). */
import { generateName } from '@coracle/apimachinery/meta/generate-name';

const LONGEST_NAME = 253;

/** `clone-SOURCE-` and five random characters. The name of the source is cut where the whole would be too long. */
export function generatedTargetName(sourceName: string, random?: (count: number) => Uint8Array): string {
  const suffix = generateName('-', random);
  return `${`clone-${sourceName}`.slice(0, LONGEST_NAME - suffix.length)}${suffix}`;
}
