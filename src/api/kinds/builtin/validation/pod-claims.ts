/** The claims of a Pod for devices, and which of them its containers use (validatePodResourceClaims). */
import { checkLabelName, checkSubdomain } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { type JsonObject, objectsAt, textAt, valueAt } from '../read-value.ts';
import { absent, duplicate, faults, invalid, type Judging, judgeEach, judgeNested, required } from './field-errors.ts';

/** Judges `resourceClaims` of a PodSpec and what its containers say of them; `podName` is '' in templates. */
export function* judgePodClaims(
  judging: Judging,
  spec: unknown,
  { path, podName }: { readonly path: string; readonly podName: string },
): Steps<void> {
  const claims = objectsAt(spec, 'resourceClaims');
  const names = new Set<string>();
  yield* judgeEach(judging, claims, (claim, i) =>
    claimErrors(claim, `${path}.resourceClaims[${i}]`, { names, podName }),
  );
  let known: string | undefined;
  // Told only where one is wrong, and then for each: the text is made once.
  const among = (): string => {
    known ??= names.size === 0 ? ' which is empty' : `: ${[...names].sort().join(', ')}`;
    return known;
  };
  for (const list of ['containers', 'initContainers', 'ephemeralContainers']) {
    const judge = (container: JsonObject, i: number) => {
      const seen = new Set<string>();
      const at = `${path}.${list}[${i}].resources.claims`;
      return judgeEach(judging, objectsAt(valueAt(container, 'resources'), 'claims'), (claim, j) => {
        const [name, request] = [textAt(claim, 'name'), textAt(claim, 'request')];
        if (name === '') return [required(`${at}[${j}]`)];
        const errors = request === '' ? [] : faults(`${at}[${j}].request`, request, checkLabelName(request));
        const key = request === '' ? name : `${name}/${request}`;
        if (seen.has(key)) errors.push(duplicate(`${at}[${j}]`, key));
        seen.add(key);
        if (names.has(name)) return errors;
        const detail = `must be one of the names in pod.spec.resourceClaims${among()}`;
        return [...errors, { ...absent(`${at}[${j}]`, name), detail }];
      });
    };
    yield* judgeNested(judging, objectsAt(spec, list), judge);
  }
}

function claimErrors(
  claim: JsonObject,
  at: string,
  { names, podName }: { readonly names: Set<string>; readonly podName: string },
): FieldError[] {
  const name = textAt(claim, 'name');
  const [own, template] = [valueAt(claim, 'resourceClaimName'), valueAt(claim, 'resourceClaimTemplateName')];
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${at}.name`));
  else if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
  else {
    const wrong = checkLabelName(name);
    errors.push(...faults(`${at}.name`, name, wrong));
    // The claim that is made of a template is called after the Pod.
    const whole = `${podName}-${name}`;
    const details = podName === '' || wrong.length > 0 || typeof template !== 'string' ? [] : checkSubdomain(whole);
    for (const detail of details) errors.push(invalid(`${at}.name`, whole, `final ResourceClaim name: ${detail}`));
    names.add(name);
  }
  // As upstream shows it: a value of its internal type, which has no JSON names.
  const shown = { Name: name, ResourceClaimName: own ?? null, ResourceClaimTemplateName: template ?? null };
  if (own != null && template != null) {
    const detail = 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified';
    errors.push(invalid(at, shown, detail));
  }
  if (own == null && template == null) {
    errors.push(invalid(at, shown, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'));
  }
  for (const [field, value] of Object.entries({ resourceClaimName: own, resourceClaimTemplateName: template })) {
    if (typeof value === 'string') errors.push(...faults(`${at}.${field}`, value, checkSubdomain(value)));
  }
  return errors;
}
