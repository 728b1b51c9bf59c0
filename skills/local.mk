# What an agent should know; put them where your harness looks for skills, or let it read them from here.
review_flows_skilldir = $(pkgdatadir)/skills/review-flows
dist_review_flows_skill_DATA = skills/review-flows/SKILL.md
agent_flows_skilldir = $(pkgdatadir)/skills/agent-flows
dist_agent_flows_skill_DATA = skills/agent-flows/SKILL.md
