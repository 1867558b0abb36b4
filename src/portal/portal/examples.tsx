import { useState } from 'preact/hooks';
import { CopyButton } from '../shared/copy-button.tsx';
import { WORDS } from '../words.ts';

const { examples: words } = WORDS.portal;

/** Programs that read the key from their environment: it stands in no file and no example. */
const LANGUAGES = [
  {
    name: 'curl',
    code: (url: string) => `curl "${url}/" \\\n  -H "Authorization: Bearer $API_KEY"`,
  },
  {
    name: 'JavaScript',
    code: (url: string) => `const response = await fetch("${url}/", {
  headers: { Authorization: \`Bearer \${process.env.API_KEY}\` },
});
if (response.status === 429) {
  const seconds = Number(response.headers.get("Retry-After"));
  console.log(\`Limited: try again in \${seconds} s.\`);
} else {
  console.log(response.status, await response.text());
}`,
  },
  {
    name: 'Python',
    code: (url: string) => `import os
import urllib.request

request = urllib.request.Request(
    "${url}/",
    headers={"Authorization": f"Bearer {os.environ['API_KEY']}"},
)
with urllib.request.urlopen(request) as response:
    print(response.status, response.read().decode())`,
  },
] as const;

/** How to send a first request. */
export function Examples({ apiUrl }: { readonly apiUrl: string }) {
  const [chosen, setChosen] = useState<(typeof LANGUAGES)[number]>(LANGUAGES[0]);
  const code = chosen.code(apiUrl);
  return (
    <section class="panel">
      <h2>{words.title}</h2>
      <p class="soft">{words.intro}</p>
      <div class="row">
        <fieldset class="ranges">
          <legend class="hidden">{words.language}</legend>
          {LANGUAGES.map((language) => (
            <label key={language.name}>
              <input
                type="radio"
                name="language"
                checked={language === chosen}
                onChange={() => setChosen(language)}
              />
              <span>{language.name}</span>
            </label>
          ))}
        </fieldset>
        <CopyButton key={chosen.name} text={code} />
      </div>
      <pre translate={false} data-example>
        {code}
      </pre>
    </section>
  );
}
