"""Commands that run tests, and commands that only look like it."""

import pytest

from rekindle.policy.briefs.runner_commands import is_test_run

RUNS = """
pytest
pytest -q tests/unit -k "not slow"
py.test -x
python -m pytest tests
python3.12 -m unittest discover -s tests
PYTHONPATH=src pytest -n 2
env CI=1 DEBUG=0 pytest
cd backend && pytest -q
cd backend pytest -q
source .venv/bin/activate && pytest
source .venv/bin/activate pytest
. .venv/bin/activate pytest
pushd web npm test
set -e npm test
export CI=1 npm test
make > out.txt 2>&1 test
uv run pytest
uv run --with hypothesis python -m pytest
poetry run pytest -x
pipenv run python manage.py test
hatch run test
tox -e py312
nox -s tests
coverage run -m pytest
.venv/bin/pytest -q 2>&1 | tail -20
timeout 600 pytest -q > out.txt 2>&1
for i in 1 2 3; do pytest -q; done
if pytest -q; then echo ok; fi
(cd web && npm test)
bash -c "cd web && npm test"
npm test
npm t
npm run test:unit -- --watch=false
npm run ci
npm --prefix web test
pnpm -r test
pnpm --filter web test
yarn test
yarn workspace web test
bun test
npx jest --runInBand
npx playwright test --project=chromium
npx cypress-runner test
npx vitest run
node --test
node_modules/.bin/mocha
deno test -A
turbo run test --filter=web
nx run-many --target=test
nx test web
cargo test
cargo test -- --list-slow
cargo nextest run
cargo t -p core
cargo xtask test
go test ./...
gotestsum -- -race ./...
just ci
just lint types unit
make test
make -j4 -C build check
make clean test
ninja -C build test
ctest --output-on-failure
meson test -C build
cmake --build build --target test
bazel test //...
buck2 test //foo:bar
pants test ::
zig build test
flutter test
dart test
swift test
xcodebuild -scheme App test
./gradlew :app:testDebugUnitTest
gradle clean test
mvn -q verify
./mvnw -B test
sbt test
sbt "testOnly *ParserSpec"
lein test
clojure -X:test
mix test
rake test
bundle exec rspec
bundle exec rake spec
bin/rails test
php artisan test
vendor/bin/phpunit
composer test
dotnet test
stack test
cabal test
dune runtest
rebar3 eunit
forge test -vvv
terraform test
docker compose run --rm web pytest
docker compose exec web npm test
docker exec app sh -c "cd /app && make test"
kubectl exec pod -- pytest
nix develop -c just ci
ssh host 'cd app && make test'
./scripts/test.sh
./run_tests.sh --fast
bash scripts/run-tests.sh
python tests/run_tests.py
python setup.py test
npx cypress run
yarn jest
pnpm exec playwright test
uvx pytest
nx affected -t test
mill _.test
julia --project -e 'using Pkg; Pkg.test()'
./vendor/bin/sail artisan test
xvfb-run npm test
earthly +test
R CMD check .
""".strip().splitlines()

OTHERS = """
pytest --version
pytest --collect-only -q
pytest --help
python -m pytest --version
npx jest --version
npx jest --listTests
cargo test --no-run
make -n test
just --list
just -l
ctest -N
tox --help
npm install jest
npm install --save-dev @playwright/test
npm ci
npm i -D vitest
npm run build
npm run lint
npm run build:test-fixtures
pnpm add -D vitest
yarn add --dev jest
pip install pytest
pip install -r requirements-test.txt
uv pip install pytest
uv add --dev pytest
poetry add pytest
poetry show pytest
cargo add --dev proptest
cargo build
cargo check
cargo clippy --tests
go build ./...
go vet ./...
npx playwright install
npx playwright show-report
cat test.py
cat tests/test_api.py
less test.log
head -50 tests/test_api.py
ls tests
ls -la test
grep test
grep -rn "pytest" .
rg test src
find . -name "*test*"
sed -n 1,20p tests/test_api.py
vim test.py
mkdir -p tests/unit
touch tests/test_new.py
rm -rf test
cp test.py test2.py
mv test tests
cd test
echo pytest
echo "npm test"
which pytest
command -v pytest
git commit -m "test"
git commit -m "Run pytest && npm test"
git checkout test
git add tests/
git diff tests/test_api.py
git push origin test
gh workflow run test
docker build -t app:test .
docker compose build test
docker compose logs test
docker push registry.example.com/test
docker compose up -d
test -f package.json
[ -d tests ]
python -c "import pytest"
python -c "print('npm test')"
python -c "main()" test
node -e "main()" test
bash test.log
./tests.zip
make > test
python app.py
python manage.py migrate
node server.js
psql -c "select test from runs"
curl http://localhost/test
mvn package -DskipTests
gradle build -x test
make build
make test-data
just fmt
ruff check .
ruff check tests
eslint tests
mypy tests
black tests
terraform plan
kubectl get pods -n test
ssh host uptime
wc -l tests/test_api.py
kill 429
ssh test
flake8 tests
python -m venv test
coverage report
npm run format:check
cypress open
helm install test ./chart

tests/test_api.py
""".strip("\n").splitlines()


@pytest.mark.parametrize("command", RUNS)
def test_a_run(command):
    """The form of the command counts, and not a list of all test runners."""
    assert is_test_run(command)


@pytest.mark.parametrize("command", OTHERS)
def test_no_run(command):
    """Commands that list, install, read or write tests do not run them."""
    assert not is_test_run(command)


def test_a_command_that_was_cut_off():
    """The words before the cut count."""
    assert is_test_run("pytest -q -k 'a and")
    assert not is_test_run("git commit -m 'run pytest and")
