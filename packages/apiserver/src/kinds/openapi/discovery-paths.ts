/** The paths of discovery in OpenAPI; only groups that are built in have theirs there. */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Definitions, OpenApiObject } from './definitions.ts';
import others from './discovery-paths.json' with { type: 'json' };
import { groupVersionPath, groupVersionsOf, operationId, operationTag } from './operations.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const TYPES = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];

/** What is reported at one path of discovery. */
interface Answer {
  readonly operationId: string;
  readonly tag: string;
  readonly description: string;
  /** The definition of what is answered; absent for text. */
  readonly definition?: string;
  readonly consumes?: readonly string[];
  readonly produces: readonly string[];
}

/** The paths in Swagger 2.0. */
export const discoveryPaths = (
  infos: readonly ResourceInfo[],
  definitions: Definitions,
): Record<string, OpenApiObject> =>
  Object.fromEntries(
    [...discoveryAnswers(infos)].map(([path, answer]) => [path, { get: render(answer, definitions) }]),
  );

/** The document of OpenAPI v3 that each path is reported in: `/apis/apps/` -> `apis/apps`. Those of versions tell more. */
export const discoveryDocuments = (infos: readonly ResourceInfo[]): string[] =>
  [...discoveryAnswers(infos).keys()].map((path) => path.slice(1, -1));

/** A path of discovery in OpenAPI v3 (`/apis/apps/v1/`); undefined for those that are not reported. */
export function discoveryPath(
  infos: readonly ResourceInfo[],
  { path, definitions }: { readonly path: string; readonly definitions: Definitions },
): OpenApiObject | undefined {
  const answer = discoveryAnswers(infos).get(path);
  return answer && { get: renderV3(answer, definitions) };
}

const TYPED = { consumes: TYPES, produces: TYPES };

/** What a group or one of its versions is reported at, as a kind of `meta/v1`. */
const typedAnswer = (
  of: Parameters<typeof operationTag>[0],
  what: string,
  { kind = what, description }: { readonly kind?: string; readonly description: string },
): Answer => ({
  ...TYPED,
  description,
  operationId: operationId(of, 'get', what),
  tag: operationTag(of),
  definition: `${META}.${kind}`,
});

/** What tells which groups, versions and resources there are, and who signs the tokens of accounts. */
function discoveryAnswers(infos: readonly ResourceInfo[]): ReadonlyMap<string, Answer> {
  const description = 'the versions that are served';
  const answers = new Map<string, Answer>([
    ['/api/', typedAnswer({ group: '' }, 'APIVersions', { description })],
    [
      '/apis/',
      { ...TYPED, description, operationId: 'getAPIVersions', tag: 'apis', definition: `${META}.APIGroupList` },
    ],
  ]);
  for (const gv of groupVersionsOf(infos.filter(({ strategy }) => !strategy.custom))) {
    const { group } = gv;
    if (group !== '') {
      answers.set(`/apis/${group}/`, typedAnswer({ group }, 'APIGroup', { description: 'what the group holds' }));
    }
    const resources = { kind: 'APIResourceList', description: 'the resources that are served' };
    answers.set(`${groupVersionPath(gv)}/`, typedAnswer(gv, 'APIResources', resources));
  }
  for (const [path, answer] of Object.entries<Answer>(others)) answers.set(path, answer);
  return answers;
}

const render = (answer: Answer, definitions: Definitions): OpenApiObject => ({
  tags: [answer.tag],
  description: answer.description,
  operationId: answer.operationId,
  schemes: ['https'],
  ...(answer.consumes && { consumes: answer.consumes }),
  produces: answer.produces,
  responses: {
    '200': { description: 'OK', schema: schemaOf(answer, definitions) },
    '401': { description: 'Unauthorized' },
  },
});

function renderV3(answer: Answer, definitions: Definitions): OpenApiObject {
  const schema = schemaOf(answer, definitions);
  return {
    tags: [answer.tag],
    description: answer.description,
    operationId: answer.operationId,
    responses: {
      '200': { description: 'OK', content: Object.fromEntries(answer.produces.map((type) => [type, { schema }])) },
      '401': { description: 'Unauthorized' },
    },
  };
}

const schemaOf = ({ definition }: Answer, definitions: Definitions): OpenApiObject =>
  definition === undefined ? { type: 'string' } : definitions.builtin(definition);
