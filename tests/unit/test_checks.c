/* SPDX-License-Identifier: Apache-2.0 */
/* Each row of the checklist's table: what it must find and what it must leave alone. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "server/checklist/checks.h"
#include "tests/unit/suite.h"

#define KEY_LINE                           \
    "MIIEowIBAAKCAQEA2mKqH0dSgVJ7x0vU9u5n" \
    "Zk1c8YF3bQpLrTtXw6sN4eGh\n"

static const struct {
    const char *check, *path, *hit, *path_near, *near;
} rows[] = {
    {"conflict", "a.c", "x\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> b\n", "a.rst",
     "Title\n=======\n\n<<<<<<<< eight\n>>>>>>> quoted\n"},
    {"conflict", "a.c", ">>>>>>> topic\n", "a.md", ">>>>>>> topic\n"},
    {"conflict", "a.c", "<<<<<<< HEAD\na\n", "a.c", "<<<<<<<HEAD\n=======\n>>>>>>>\n"},
    {"conflict", "a.md", "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> b\n", "a.md",
     "```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> b\n```\n"},
    {"conflict", "a.py", "<<<<<<< HEAD\r\na\r\n=======\r\nb\r\n>>>>>>> b\r\n", "a.patch",
     "<<<<<<< HEAD\n=======\n>>>>>>> b\n"},
    {"trailing-blank", "a.c", "int a; \n", "a.md", "break  \n"},
    {"trailing-blank", "a.md", "one \n", "a.c", "crlf\r\n"},
    {"trailing-blank", "a.txt", "last\t", "a.patch", "+ \n"},
    {"trailing-blank", "a.md", "   \n", "a.tsv", "a\t\n"},
    {"trailing-blank", "a.c", "a \r\n", "a.c", "\r\n\n"},
    {"space-before-tab", "a.c", " \tint a;\n", "a.c", "\t int a;\n\ta \tb\n"},
    {"blank-at-end", "a.c", "a\n\n", "a.c", "a\n"},
    {"blank-at-end", "a.c", "a\n\n\n\n", "a.py", "\n"},
    {"debugger", "a.js", "  debugger;\n", "a.js", "  // debugger;\nconst debugger2 = 1;\n"},
    {"debugger", "a.ts", "debugger // x\n", "a.py", "debugger\n"},
    {"console-debug", "a.js", "console.log('HERE!');\n", "a.js",
     "console.log('here we go');\nconsole.error(\"DEBUGGING\");\n"},
    {"pdb", "a.py", "    import pdb; pdb.set_trace()\n", "a.py",
     "import pdb\n# pdb.set_trace()\nx.pdb.set_trace()\n"},
    {"breakpoint", "a.py", "\tbreakpoint()\n", "a.py", "set_breakpoint()\nbreakpoint(1)\n"},
    {"pry", "a.rb", "  binding.pry\n", "a.rb", "binding.pry_if(x)\n\"byebug\"\n"},
    {"var-dump", "a.php", "  var_dump($a);\n", "a.php", "add($a);\n// var_dump($a);\n"},
    {"dbg", "a.rs", "    dbg!(x);\n", "a.rs", "// dbg!(x)\nmy_dbg!(x);\n"},
    {"go-print", "a.go", "\tfmt.Println(\"DEBUG:\", x)\n", "a.go",
     "\tfmt.Println(\"here is\", x)\n"},
    {"c-print", "a.c", "    printf(\"HERE\\n\");\n", "a.c",
     "    printf(\"here we are\\n\");\n    my_printf(\"DEBUG:\");\n"},
    {"c-print", "a.c", "fprintf(stderr, \"DEBUG: %d\\n\", x);\n", "a.txt",
     "printf(\"DEBUG: \");\n"},
    {"private-key", "id",
     "-----BEGIN "
     "RSA PRIVATE KEY-----\n" KEY_LINE,
     "a.c",
     "if (starts(p, \"-----BEGIN "
     "PRIVATE KEY-----\")) {\n"},
    {"private-key", "a.js",
     "k = '-----BEGIN "
     "PRIVATE KEY-----\\nMIIEowIBAAKCAQEA2mKqH0dSgVJ7x0vU9u5nZk1c8YF3bQpL';\n",
     "a.pem", "-----BEGIN CERTIFICATE-----\n" KEY_LINE},
    {"aws-key", "a.env",
     "KEY=AKIA"
     "Q3EGN5KTW2XVBD7R\n",
     "a.env",
     "KEY=AKIA"
     "IOSFODNN7EXAMPLE\nXAKIA"
     "Q3EGN5KTW2XVBD7R\nAKIA"
     "Q3EGN5\n"},
    {"github-token", "a",
     "t: ghp_"
     "k3Jx9QmT2vLw8ZrB5nYc1HdF6sGp4AuE0iXo\n",
     "a",
     "t: ghp_"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nghp_"
     "short\n"},
    {"slack-token", "a",
     "xoxb-"
     "281735023471-Kd83nVmq0TzYpWbR2xLs\n",
     "a",
     "xoxb-"
     "your-token-goes-here-please\n"},
    {"google-key", "a",
     "AIza"
     "SyB3kQ9mXv7TzLwR2nYc1HdF6sGp4AuE0iX\n",
     "a",
     "AIza"
     "Sy-not-long-enough-1\n"},
    {"sk-key", "a",
     "sk-"
     "proj-k3Jx9QmT2vLw8ZrB5nYc1HdF6sGp4AuE\n",
     "a",
     "sk-"
     "your-key-sk-your-key-sk-your-key-1\ntask-"
     "k3Jx9QmT2vLw8ZrB5nYc1HdF6sGp4AuE\n"},
    {"assigned-secret", "a.py",
     "PASSWORD = '"
     "k3Jx9QmT2vLw8ZrB'\n",
     "a.py",
     "password = 'correct-horse-battery-staple'\ntoken = \"${TOKEN_FROM_ENV_1234}\"\n"
     "password = os.environ['PASSWORD_FOR_DB_01']\ntoken: \"<your-token-1234-here>\"\n"},
    {"assigned-secret", "a.json",
     "{\"api_key\": \""
     "9f8Qz3LmX7vT2wRk\"}\n",
     "a.py", "secret = 'changeme1234changeme'\ntokenizer = 'k3Jx9QmT2vLw8ZrB'\n"},
    {"assigned-secret", "a.yml",
     "GITHUB_TOKEN: '"
     "k3Jx9QmT2vLw8ZrB'\n",
     "a.rst",
     "\"NextToken\": \""
     "eyJOZXh0IjogMTIzNDU2fQ99\"\n"},
    {"assigned-secret", "a.ts",
     "clientSecret: '"
     "k3Jx9QmT2vLw8ZrB',\n",
     "a.py",
     "\"X::Secret\": \""
     "48201e6f9b8cc8d3\"\n"},
    {"json", "a.json", "{\"a\": }\n", "a.json", "{\"a\": 1, \"a\": 2}\n"},
    {"json", "a.json", "\xef\xbb\xbf{}\n", "a.jsonc", "{ // x\n}\n"},
    {"json", "a.json", "{\"a\": 1, \"a\": 2,}\n", "tsconfig.base.json", "{ // x\n}\n"},
    {"json", "x/a.json", "{ // x\n}\n", "x/.vscode/a.json", "{ // x\n}\n"},
    {"json", "a.json", "{\"a\": 1}\n{}\n", "a.json", "{\"a\": {{ x }}}\n"},
    {"yaml", "a.yml", "a: [1, 2\nb: 3\n", "a.yml", "a: [1, 2]\n---\nb: !tag 3\n"},
    {"yaml", "a.yaml", "on: ${{ x }}\na: b: c\n", "a.yaml", "{{ if x }}\na: b: c\n"},
    {"yaml", "a.yaml", "a:\n\t- b\n", "a.yaml", "a: \"${{ x }}\"\nb: &c 1\nd: *c\n"},
};

static struct file
added_file(const char *path, const char *content)
{
    static char name[200];
    struct file file = {.path = name,
                        .status = 'A',
                        .new_mode = 0100644,
                        .all_added = true,
                        .check_eol_blanks = true,
                        .check_eof_blanks = true,
                        .check_tab_blanks = true};

    (void)snprintf(name, sizeof name, "%s", path);
    file_set_content(&file, content, strlen(content));
    return file;
}

static const struct check *
find_check(const char *name)
{
    for (size_t i = 0; i < checks_count; i++) {
        if (strcmp(checks_table[i].name, name) == 0)
            return &checks_table[i];
    }
    ck_abort_msg("no check is called %s", name);
    return NULL;
}

static char *
run_checks(const struct file *file, size_t *ret_count)
{
    struct report report;
    char *text;

    report_init(&report);
    ck_assert_int_eq(checks_init(), 0);
    checks_run(file, &report);
    checks_fini();
    *ret_count = report.count;
    text = report_text(&report, "a test", 1);
    report_fini(&report);
    ck_assert_ptr_nonnull(text);
    return text;
}

START_TEST(hits)
{
    struct file file = added_file(rows[_i].path, rows[_i].hit);
    size_t count;
    char *text = run_checks(&file, &count);

    ck_assert_msg(count == 1, "%s: %s", rows[_i].check, text);
    ck_assert_ptr_nonnull(strstr(text, find_check(rows[_i].check)->says));
    free(text);
}
END_TEST

START_TEST(near_misses)
{
    struct file file = added_file(rows[_i].path_near, rows[_i].near);
    size_t count;
    char *text = run_checks(&file, &count);

    ck_assert_msg(count == 0, "%s: %s", rows[_i].check, text);
    free(text);
}
END_TEST

/* Checks of a whole file have their rows in the tests below. */
START_TEST(every_check_has_a_row)
{
    static const char *const files[] = {"binary", "size", "mode", "shebang"};

    for (size_t i = 0; i < checks_count; i++) {
        bool found = false;
        for (int row = 0; row < N_ROWS(rows); row++)
            found = found || strcmp(rows[row].check, checks_table[i].name) == 0;
        for (int row = 0; row < N_ROWS(files); row++)
            found = found || strcmp(files[row], checks_table[i].name) == 0;
        ck_assert_msg(found, "%s has no test", checks_table[i].name);
    }
}
END_TEST

START_TEST(only_added_lines)
{
    struct range added[] = {{.first = 2, .count = 1}, {.first = 5, .count = 2}};
    struct file file = added_file("a.c", "a \nb \nc \nd \ne \nf \ng \n");
    size_t count;
    char *text;

    file.all_added = false;
    file.added = added;
    file.added_count = 2;
    text = run_checks(&file, &count);
    ck_assert_str_eq(strchr(text, '\n') + 1, "a.c:2: blank at the end of the line\n"
                                             "a.c:5: blank at the end of the line\n"
                                             "a.c:6: blank at the end of the line\n");
    free(text);
}
END_TEST

START_TEST(one_conflict_is_one_finding)
{
    struct file file = added_file("a.json", "{\n<<<<<<< HEAD\n1\n||||||| base\n2\n=======\n3\n"
                                            ">>>>>>> topic\n}\n<<<<<<< HEAD\n>>>>>>> topic\n");
    size_t count;
    char *text = run_checks(&file, &count);

    ck_assert_msg(count == 2, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "a.json:2: conflict"));
    ck_assert_ptr_nonnull(strstr(text, "a.json:10: conflict"));
    free(text);
}
END_TEST

static const struct {
    const char *path, *content;
    size_t len;
    char status;
    unsigned old_mode, new_mode;
    const char *says; /* NULL: nothing */
} file_rows[] = {
    {"prog", "\177ELF\0\0", 6, 'A', 0, 0100755, "compiled program"},
    {"a.pyc", "\0\0", 2, 'A', 0, 0100644, "compiled program"},
    {"prog", "\177ELF\0\0", 6, 'M', 0100755, 0100755, NULL},
    {"a.png", "\x89PNG\0", 5, 'A', 0, 0100644, NULL},
    {"a.obj", "# a 3D model in text\n", 21, 'A', 0, 0100644, NULL},
    {"run", "echo hi\n", 8, 'A', 0, 0100755, "#!"},
    {"run", "#!/bin/sh\n", 10, 'A', 0, 0100755, NULL},
    {"run", "", 0, 'A', 0, 0100755, NULL},
    {"run.cmd", "@echo off\r\n", 11, 'A', 0, 0100755, NULL},
    {"run", "echo hi\n", 8, 'M', 0100755, 0100755, NULL},
    {"run", "#!/bin/sh\n", 10, 'M', 0100644, 0100755, "executable bit was set"},
    {"run", "#!/bin/sh\n", 10, 'M', 0100755, 0100644, "executable bit was removed"},
    {"run", "#!/bin/sh\n", 10, 'T', 0120000, 0100755, NULL},
};

START_TEST(files)
{
    struct file file = added_file(file_rows[_i].path, "");
    size_t count;
    char *text;

    file_set_content(&file, file_rows[_i].content, file_rows[_i].len);
    file.status = file_rows[_i].status;
    file.old_mode = file_rows[_i].old_mode;
    file.new_mode = file_rows[_i].new_mode;
    text = run_checks(&file, &count);
    ck_assert_msg(count == (file_rows[_i].says ? 1 : 0), "%s", text);
    if (file_rows[_i].says)
        ck_assert_ptr_nonnull(strstr(text, file_rows[_i].says));
    free(text);
}
END_TEST

START_TEST(sizes_of_files)
{
    static const struct {
        int64_t size;
        char status;
        size_t count;
    } sizes[] = {
        {1 << 20, 'A', 0}, {(1 << 20) + 1, 'A', 1}, {1 << 30, 'A', 1}, {1 << 30, 'M', 0}};
    struct file file = added_file("a.txt", "");
    size_t count;

    file.data = NULL; /* as of a file that is too large to be read */
    file.size = sizes[_i].size;
    file.status = sizes[_i].status;
    free(run_checks(&file, &count));
    ck_assert_uint_eq(count, sizes[_i].count);
}
END_TEST

START_TEST(secrets_stay_secret)
{
    struct file file = added_file("a", "ghp_"
                                       "k3Jx9QmT2vLw8ZrB5nYc1HdF6sGp4AuE0iXo\n");
    size_t count;
    char *text = run_checks(&file, &count);

    ck_assert_ptr_nonnull(strstr(text, "(ghp_...)"));
    ck_assert_ptr_null(strstr(text, "k3J"));
    free(text);
}
END_TEST

static void
add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, hits, 0, N_ROWS(rows));
    tcase_add_loop_test(tests, near_misses, 0, N_ROWS(rows));
    tcase_add_test(tests, every_check_has_a_row);
    tcase_add_test(tests, only_added_lines);
    tcase_add_test(tests, one_conflict_is_one_finding);
    tcase_add_loop_test(tests, files, 0, N_ROWS(file_rows));
    tcase_add_loop_test(tests, sizes_of_files, 0, 4);
    tcase_add_test(tests, secrets_stay_secret);
}

int
main(void)
{
    return suite_run("checks", add_tests);
}
